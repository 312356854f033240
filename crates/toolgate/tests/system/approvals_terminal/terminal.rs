//! A terminal with the inbox on it: keys go in, screens come out.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Where each screen begins.
const TOP: &str = "\x1b[H";
/// How many screens are looked at before something is said never to come. Four are drawn in a second.
const TIMEOUT: usize = 400;

/// The terminal.
pub struct Terminal {
    pub child: Child,
    far: File,
    screens: Receiver<String>,
}

impl Terminal {
    /// Runs the command on a terminal of its own.
    pub fn run(mut command: Command) -> Self {
        let far = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&far).unwrap();
        unlockpt(&far).unwrap();
        let name = ptsname(&far, Vec::new()).unwrap().into_string().unwrap();
        tcsetwinsize(&far, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let near = OpenOptions::new().read(true).write(true).open(name).unwrap();
        command.stdin(near.try_clone().unwrap()).stdout(near.try_clone().unwrap()).stderr(near);
        let child = command.spawn().unwrap();
        // Its copies of the near end are closed with it, or the far end would never be told that the child has ended.
        drop(command);
        let far = File::from(far);
        let screens = read_screens(far.try_clone().unwrap());
        Self { child, far, screens }
    }

    /// Presses keys, all at once.
    pub fn press(&mut self, keys: &str) {
        self.far.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a screen that has this on it.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> String {
        self.until_either(&[text]).1
    }

    /// Waits for a screen that has one of these on it; answers which.
    #[track_caller]
    fn until_either(&mut self, texts: &[&str]) -> (usize, String) {
        let mut last = String::new();
        for _ in 0..TIMEOUT {
            let Ok(screen) = self.screens.recv_timeout(Duration::from_secs(60)) else { break };
            if let Some(found) = texts.iter().position(|text| screen.contains(text)) {
                return (found, screen);
            }
            last = screen;
        }
        panic!("{texts:?} never came; the last screen was:\n{last}");
    }

    /// Waits until keys count, by pressing the one that never decides anything.
    #[track_caller]
    pub fn settle(&mut self) {
        for _ in 0..TIMEOUT {
            self.press("\r");
            if self.until_either(&["Enter decides nothing", "had just changed", "at once"]).0 == 0 {
                return;
            }
            // Without a key, screens come only as time passes.
            (0..3).for_each(|_| drop(self.screens.recv()));
        }
        panic!("the inbox never takes keys");
    }

    /// The modes of the terminal, which can be looked at when the program has ended.
    pub fn modes(&self) -> Modes {
        Modes(self.far.try_clone().unwrap())
    }

    /// Waits for the end of the program; answers its status and what came last.
    pub fn end(mut self) -> (Option<i32>, String) {
        let mut last = String::new();
        while let Ok(screen) = self.screens.recv_timeout(Duration::from_secs(60)) {
            last = screen;
        }
        (self.child.wait().unwrap().code(), last)
    }

    /// The terminal goes away, as with a window that is closed.
    pub fn vanish(self) -> Child {
        self.child
    }
}

/// How a terminal treats what is typed.
pub struct Modes(File);

impl Modes {
    /// Whether it is shown and waits for the end of its line.
    pub fn are_as_a_shell_wants_them(&self) -> bool {
        let modes = tcgetattr(&self.0).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }
}

/// Screens without their tones; the last one with what gives the terminal back.
fn read_screens(mut far: File) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            // The end of the program is told by an error.
            let count = far.read(&mut buffer).unwrap_or(0);
            bytes.extend_from_slice(&buffer[..count]);
            if let Ok(more) = std::str::from_utf8(&bytes) {
                text.push_str(more);
                bytes.clear();
            }
            while let Some((screen, rest)) = text.split_once(TOP) {
                let (screen, rest) = (plain(screen), rest.to_owned());
                text = rest;
                if sender.send(screen).is_err() {
                    return;
                }
            }
            if count == 0 {
                let _ = sender.send(text);
                return;
            }
        }
    });
    receiver
}

fn plain(screen: &str) -> String {
    let mut plain = String::new();
    let mut letters = screen.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    plain
}
