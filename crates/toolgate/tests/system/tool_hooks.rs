//! Tool hooks (OpenWOP RFC 0064) through the real binary: what is refused is never sent, what is hashed holds no secret,
//! and every event of every kind of ending fits what is published.

mod endings;
mod hashes;
mod not_invoked;
mod office;
