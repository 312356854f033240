//! The payments service of the demo, on loopback. It requires a key, and intentionally returns it in its responses, like a
//! service with debug output.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use toolgate_cli::Failure;
use toolgate_server::listener::TrustedProxies;
use toolgate_server::operations::metrics::OpenConnections;
use toolgate_server::shutdown::Shutdown;
use toolgate_server::{Endpoint, Limits, Serving, WorkerRuntimes, serve};

/// The key of the service. It is valid only here.
pub(super) const KEY: &str = "sk_demo_4f9a2c71b83e60d5";

/// Dropping it stops the service.
pub(super) struct Payments {
    address: SocketAddr,
    records: Arc<PaymentRecords>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct PaymentRecords {
    charges: Mutex<Vec<Value>>,
    authorizations: Mutex<Vec<String>>,
}

impl Payments {
    pub(super) async fn start() -> Result<Self, Failure> {
        let failed = |error| Failure::io("could not start the payments service of the demo", error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let records = Arc::new(PaymentRecords::default());
        let router = Router::new()
            .route("/v1/charges", post(charge))
            .route("/v1/charges/{id}", get(show))
            .route("/v1/refunds", post(refund))
            .with_state(Arc::clone(&records));
        let serving = tokio::spawn(async move {
            let serving = Serving {
                router,
                limits: Limits::default(),
                proxies: TrustedProxies::default(),
                shutdown: Arc::new(Shutdown::default()),
                connections: OpenConnections::default(),
            };
            let endpoint = Endpoint::Tcp { listener, tls: None, proxy_protocol: false };
            serve(vec![endpoint], serving, &WorkerRuntimes::here()).await;
        });
        Ok(Self { address, records, serving })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The `Authorization` headers that arrived, in order.
    pub(super) fn authorizations(&self) -> Vec<String> {
        self.records.authorizations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn definition(&self) -> Value {
        json!({
            "service": "payments",
            "version": "2024-01",
            "description": "Takes payments",
            "base_url": self.url(),
            "tools": {
                "charges.create": {
                    "description": "Charge a card",
                    "parameters": {
                        "amount": {"type": "integer", "minimum": 1, "required": true},
                        "currency": {"type": "string", "required": true},
                    },
                    "estimated_cost_usd": 0.02,
                    "http": {"method": "POST", "path": "/v1/charges", "success": [201]},
                },
                "charges.read": {
                    "description": "Show a charge",
                    "parameters": {"id": {"type": "string", "required": true}},
                    "idempotent": true,
                    "http": {"method": "GET", "path": "/v1/charges/{id}"},
                },
                "refunds.create": {
                    "description": "Refund a charge",
                    "parameters": {"charge": {"type": "string", "required": true}},
                    "http": {"method": "POST", "path": "/v1/refunds"},
                },
            },
        })
    }
}

impl Drop for Payments {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Response = (StatusCode, Json<Value>);

async fn charge(State(records): State<Arc<PaymentRecords>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let Some(authorization) = records.authorize(&headers) else { return unauthorized() };
    let mut charges = records.charges.lock().unwrap_or_else(PoisonError::into_inner);
    let id = format!("ch_{}", charges.len() + 1);
    let charge = json!({"id": id, "amount": body.get("amount"), "currency": body.get("currency")});
    charges.push(charge.clone());
    (StatusCode::CREATED, Json(with_debug(charge, &authorization)))
}

async fn show(State(records): State<Arc<PaymentRecords>>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    let Some(authorization) = records.authorize(&headers) else { return unauthorized() };
    let charges = records.charges.lock().unwrap_or_else(PoisonError::into_inner);
    match charges.iter().find(|charge| charge.get("id").and_then(Value::as_str) == Some(&id)) {
        Some(charge) => (StatusCode::OK, Json(with_debug(charge.clone(), &authorization))),
        None => (StatusCode::NOT_FOUND, Json(json!({"error": "no such charge"}))),
    }
}

async fn refund(State(records): State<Arc<PaymentRecords>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let Some(authorization) = records.authorize(&headers) else { return unauthorized() };
    (StatusCode::OK, Json(with_debug(json!({"id": "re_1", "charge": body.get("charge")}), &authorization)))
}

impl PaymentRecords {
    /// Records the credential of the caller, and returns it if it is the key.
    fn authorize(&self, headers: &HeaderMap) -> Option<String> {
        let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?.to_owned();
        self.authorizations.lock().unwrap_or_else(PoisonError::into_inner).push(shown.clone());
        (shown == format!("Bearer {KEY}")).then_some(shown)
    }
}

fn with_debug(mut response: Value, authorization: &str) -> Value {
    if let Value::Object(members) = &mut response {
        members.insert("debug".to_owned(), json!(format!("got {authorization}")));
    }
    response
}

fn unauthorized() -> Response {
    (StatusCode::UNAUTHORIZED, Json(json!({"error": "send the key as a bearer token"})))
}
