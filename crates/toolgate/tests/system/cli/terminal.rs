//! What a person sees at a terminal: tables that fit it, help whose examples can be copied.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Person, setup};

/// What the command shows on a terminal of so many columns.
fn shown(mut command: Command, columns: u16) -> String {
    let far = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&far).unwrap();
    unlockpt(&far).unwrap();
    let name = ptsname(&far, Vec::new()).unwrap().into_string().unwrap();
    tcsetwinsize(&far, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let near = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(near).stderr(Stdio::null()).spawn().unwrap();
    // The copy of the near end is closed with it, or the far end would never be told that the child has ended.
    drop(command);
    let mut far = File::from(far);
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    // The end of the program is told by an error.
    while let Ok(count) = far.read(&mut buffer)
        && count > 0
    {
        bytes.extend_from_slice(&buffer[..count]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

#[test]
fn tables_fit_the_terminal_and_identifiers_can_be_copied() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let long = "an-agent-with-a-name-that-takes-much-room-in-a-table";
    person.reads(&["agent", "create", long, "--permission", "tools.invoke", "--permission", "tools.delegate"]);
    let vault = person.makes(&["vault", "create", "a vault with a rather long name of many words"], "");
    let piped = person.reads(&["vault", "list"]);
    assert_eq!(piped.lines().count(), 2, "one line for each row, however long: {piped}");
    for columns in [60, 80, 120] {
        for (list, words) in
            [(["vault", "list"], [vault.as_str(), "admin"]), (["agent", "list"], [long, "tools.delegate,"])]
        {
            let mut command = gate.cli();
            command.args(list);
            let text = shown(command, columns);
            assert!(text.lines().all(|line| line.chars().count() <= columns.into()), "{columns}:\n{text}");
            for word in words {
                assert!(
                    text.split_whitespace().any(|found| found == word.trim_end_matches(',') || found == word),
                    "{word}:\n{text}"
                );
            }
        }
    }
}

#[test]
fn examples_in_the_help_are_whole_lines_on_a_narrow_terminal() {
    let setup = setup();
    let example = "  toolgate tool call payments.charges.create --param currency=usd --param amount:=2000 | jq .id\n";
    for columns in [40, 80] {
        for flag in ["-h", "--help"] {
            let mut command = setup.command();
            command.args(["tool", "call", flag]);
            let text = shown(command, columns);
            assert!(text.contains(example), "{columns}:\n{text}");
        }
    }
}
