//! A small payments service that behaves like a real one: it requires a bearer token, validates requests, and numbers
//! and stores charges.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::{Received, Reply};

/// The charges and refunds so far.
#[derive(Default)]
pub(super) struct Payments(Mutex<Books>);

#[derive(Default)]
struct Books {
    charges: Vec<Value>,
    refunds: usize,
}

impl Payments {
    /// Handles one request.
    pub fn answer(&self, request: &Received) -> Reply {
        if request.bearer().is_none() {
            return error(401, "authentication_required", "send the API key as a bearer token");
        }
        match (request.method.as_str(), request.path()) {
            ("POST", "/v1/charges") => self.charge(request),
            ("GET", "/v1/charges") => self.list(request),
            ("POST", "/v1/refunds") => self.refund(request),
            ("GET", "/v1/balance") => self.balance(),
            ("GET", path) => match path.strip_prefix("/v1/charges/") {
                Some(id) if id.starts_with("ch_") => self.show(id),
                _ => error(404, "not_found", "there is no such thing"),
            },
            _ => error(404, "not_found", "there is no such thing"),
        }
    }

    fn charge(&self, request: &Received) -> Reply {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (Some(amount), Some(currency)) = (body["amount"].as_u64(), body["currency"].as_str()) else {
            return error(400, "invalid_request", "a charge needs a whole amount and a currency");
        };
        self.books(|books| {
            let charge = charge(&format!("ch_{}", books.charges.len() + 1), amount, currency);
            books.charges.push(charge.clone());
            Reply::json(201, charge)
        })
    }

    fn show(&self, id: &str) -> Reply {
        let known = self.books(|books| books.charges.iter().find(|charge| charge["id"] == id).cloned());
        Reply::json(200, known.unwrap_or_else(|| charge(id, 2000, "usd")))
    }

    /// Newest first.
    fn list(&self, request: &Received) -> Reply {
        let query = request.query();
        let limit = query.iter().find(|(name, _)| name == "limit").map_or(Ok(10), |(_, value)| value.parse());
        let Ok(limit) = limit else { return error(400, "invalid_request", "the limit must be a whole number") };
        self.books(|books| {
            let data: Vec<&Value> = books.charges.iter().rev().take(limit).collect();
            Reply::json(200, json!({"object": "list", "data": data, "has_more": books.charges.len() > limit}))
        })
    }

    fn refund(&self, request: &Received) -> Reply {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some(charge) = body["charge"].as_str() else {
            return error(400, "invalid_request", "a refund needs the id of a charge");
        };
        self.books(|books| {
            books.refunds += 1;
            let id = format!("re_{}", books.refunds);
            Reply::json(201, json!({"id": id, "charge": charge, "amount": body["amount"], "status": "succeeded"}))
        })
    }

    fn balance(&self) -> Reply {
        let amount: u64 = self.books(|books| books.charges.iter().filter_map(|charge| charge["amount"].as_u64()).sum());
        Reply::json(200, json!({"available": [{"amount": amount, "currency": "usd"}]}))
    }

    fn books<T>(&self, work: impl FnOnce(&mut Books) -> T) -> T {
        work(&mut self.0.lock().expect("a lock under which nothing panics"))
    }
}

fn charge(id: &str, amount: u64, currency: &str) -> Value {
    json!({"id": id, "amount": amount, "currency": currency, "status": "succeeded"})
}

fn error(status: u16, code: &str, message: &str) -> Reply {
    Reply::json(status, json!({"error": {"code": code, "message": message}}))
}
