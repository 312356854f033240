//! The methods of A2A: the names up to 0.3, which AOS uses, the names of 1.0, and Joch's labels.

use toolgate_model::guard::Hook;

/// Method names with their hooks. The first name of a hook is the one that is written.
const METHODS: &[(&str, Hook)] = &[
    ("message/send", Hook::A2aSend),
    ("SendMessage", Hook::A2aSend),
    ("message/stream", Hook::A2aStream),
    ("SendStreamingMessage", Hook::A2aStream),
    ("tasks/cancel", Hook::A2aCancel),
    ("CancelTask", Hook::A2aCancel),
    ("tasks/get", Hook::A2aGetTask),
    ("GetTask", Hook::A2aGetTask),
    ("tasks/pushNotificationConfig/get", Hook::A2aNotificationConfig),
    ("GetTaskPushNotificationConfig", Hook::A2aNotificationConfig),
    ("tasks/pushNotificationConfig/set", Hook::A2aNotificationConfig),
    ("CreateTaskPushNotificationConfig", Hook::A2aNotificationConfig),
    ("tasks/pushNotificationConfig/list", Hook::A2aNotificationConfig),
    ("ListTaskPushNotificationConfigs", Hook::A2aNotificationConfig),
    ("tasks/pushNotificationConfig/delete", Hook::A2aNotificationConfig),
    ("DeleteTaskPushNotificationConfig", Hook::A2aNotificationConfig),
    ("tasks/resubscribe", Hook::A2aNotificationConfig),
    ("SubscribeToTask", Hook::A2aNotificationConfig),
    ("tasks/list", Hook::A2aOther),
    ("ListTasks", Hook::A2aOther),
    ("agent/getAuthenticatedExtendedCard", Hook::A2aOther),
    ("GetExtendedAgentCard", Hook::A2aOther),
];

/// Joch's labels, which A2A itself does not use, with the methods that they stand for.
const LABELS: &[(&str, &str)] = &[
    ("send_message", "message/send"),
    ("stream_message", "message/stream"),
    ("cancel_request", "tasks/cancel"),
    ("get_task", "tasks/get"),
];

/// The paths in an A2A message that identify its request, task and conversation.
pub(crate) const IDENTITY: &[&str] = &[
    "/jsonrpc",
    "/id",
    "/method",
    "/taskId",
    "/contextId",
    "/params/id",
    "/params/taskId",
    "/params/contextId",
    "/params/tenant",
    "/params/message/messageId",
    "/params/message/taskId",
    "/params/message/contextId",
    "/result/id",
    "/result/taskId",
    "/result/contextId",
    "/result/task/id",
    "/result/task/contextId",
    "/result/message/taskId",
    "/result/message/contextId",
];

/// The A2A name of a method and its hook; `None` for an unknown method.
pub(crate) fn find(name: &str) -> Option<(&'static str, Hook)> {
    let name = LABELS.iter().find(|(label, _)| *label == name).map_or(name, |(_, method)| method);
    METHODS.iter().copied().find(|(known, _)| *known == name)
}

/// The method name to send for a hook: the event's own if it belongs to the hook.
pub(crate) fn name_for(hook: Hook, method: Option<&str>) -> Option<&'static str> {
    if let Some((name, found)) = method.and_then(find)
        && found == hook
    {
        return Some(name);
    }
    METHODS.iter().find(|(_, known)| *known == hook).map(|(name, _)| *name)
}

/// Whether a method sets a push notification configuration: the only one of these methods whose content AOS lets a
/// guardian modify.
pub(crate) fn sets_a_config(method: &str) -> bool {
    matches!(method, "tasks/pushNotificationConfig/set" | "CreateTaskPushNotificationConfig")
}
