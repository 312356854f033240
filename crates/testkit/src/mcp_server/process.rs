//! A server that is a process.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A server that is a process: a program for `sh`, in which a test chooses what it does by the arguments of tools and by
/// the variable `CONDUCT`.
pub struct McpProcess {
    directory: tempfile::TempDir,
}

impl McpProcess {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory for the program");
        std::fs::write(directory.path().join("server.sh"), PROGRAM).expect("the program is written");
        Self { directory }
    }

    /// The command that starts it.
    pub fn command(&self) -> Vec<String> {
        vec!["/bin/sh".to_owned(), self.directory.path().join("server.sh").display().to_string()]
    }

    /// Where the program is.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A file that it appends a line to at each start, if the variable `STARTS` names it.
    pub fn starts_file(&self) -> PathBuf {
        self.directory.path().join("starts")
    }

    /// How often it was started.
    pub fn starts(&self) -> usize {
        std::fs::read_to_string(self.starts_file()).map_or(0, |text| text.lines().count())
    }
}

/// What the process lists.
pub fn process_tools() -> Vec<Value> {
    vec![json!({"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}})]
}

impl Default for McpProcess {
    fn default() -> Self {
        Self::new()
    }
}

/// Relies on the id being the second member of every request.
const PROGRAM: &str = r#"
[ -n "$STARTS" ] && echo "$$" >> "$STARTS"
[ "$CONDUCT" = crash ] && exit 3
echo "started with ${TOKEN:-nothing}" >&2
[ "$CONDUCT" = noisy ] && while echo noise; do sleep 0.01; done &
count=0
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
error() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"no"}}\n' "$id" "$1"; }
text() { result "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while IFS= read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}
    case "$line" in
    *'"method":"server/discover"'*)
        case "$CONDUCT" in
        modern) result '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}';;
        strict) exit 4;;
        *) error -32601;;
        esac;;
    *'"method":"initialize"'*)
        result '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"process","version":"1"}}';;
    *'"method":"notifications/cancelled"'*) echo "$line" >> "${CANCELLED:-/dev/null}";;
    *'"method":"notifications/'*) ;;
    *'"method":"tools/list"'*)
        result '{"tools":[{"name":"count","description":"Counts.","inputSchema":{"type":"object"}}]}';;
    *'"do":"silent"'*) echo "$id" >> "${SILENT:-/dev/null}";;
    *'"do":"exit"'*) exit 5;;
    *'"do":"malformed"'*) echo '{"jsonrpc":"2.0","id":';;
    *'"do":"wrong-id"'*) id=999999999; text wrong;;
    *'"do":"noise"'*) echo 'Listening...'; echo; text quiet;;
    *'"do":"giant"'*) head -c 3000000 /dev/zero | tr '\0' 'x'; echo;;
    *'"do":"token"'*) text "token $TOKEN of $HOME in $SECRET_OF_GATE";;
    *'"do":"ask"'*)
        printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}\n'
        IFS= read -r answer
        case "$answer" in *'"error"'*) text refused;; *) text strange;; esac;;
    *'"do":"elicit"'*)
        printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object"}}}\n'
        IFS= read -r answer
        case "$answer" in *'"error"'*) text refused;; *'"name":"Ann"'*) text "hello Ann";; *) text strange;; esac;;
    *'"do":"slow"'*)
        for step in 1 2; do printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"total":2,"message":"%s"}}\n' "$id" "$step" "$TOKEN"; done
        text done;;
    *'"do":"child"'*) sleep 1000 & text "$!";;
    *'"method":"tools/call"'*) count=$((count + 1)); text "$count of $$";;
    *) error -32601;;
    esac
done
"#;
