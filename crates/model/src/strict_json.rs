//! strict_json
