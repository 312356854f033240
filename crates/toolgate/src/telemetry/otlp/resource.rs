//! The requests of OTLP: the description of this gate, around encoded spans and metrics.

use super::protobuf::Message;

/// The description of this gate.
pub(super) struct Resource {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl Resource {
    /// With an id that distinguishes this process from others.
    pub(super) fn new(instance: &str) -> Self {
        let mut resource = Message::default();
        attribute(&mut resource, 1, "service.name", "toolgate");
        attribute(&mut resource, 1, "service.version", env!("CARGO_PKG_VERSION"));
        attribute(&mut resource, 1, "service.instance.id", instance);
        let mut scope = Message::default();
        scope.text(1, "toolgate");
        scope.text(2, env!("CARGO_PKG_VERSION"));
        Self { resource: resource.into_bytes(), scope: scope.into_bytes() }
    }

    /// An `ExportTraceServiceRequest` with the spans of these calls.
    pub(super) fn spans(&self, calls: &[Vec<u8>]) -> Vec<u8> {
        self.request(&calls.concat())
    }

    /// An `ExportMetricsServiceRequest` with these metrics.
    pub(super) fn metrics(&self, metrics: &[u8]) -> Vec<u8> {
        self.request(metrics)
    }

    /// Both requests have the same shape. `items` are fields 2 of the innermost message.
    fn request(&self, items: &[u8]) -> Vec<u8> {
        let mut request = Message::default();
        request.message(1, |of_resource| {
            of_resource.bytes(1, &self.resource);
            of_resource.message(2, |of_scope| {
                of_scope.bytes(1, &self.scope);
                of_scope.fields(items);
            });
        });
        request.into_bytes()
    }
}

/// A `KeyValue` with a text.
pub(super) fn attribute(message: &mut Message, field: u64, key: &str, value: &str) {
    message.message(field, |attribute| {
        attribute.text(1, key);
        attribute.message(2, |any| any.text(1, value));
    });
}
