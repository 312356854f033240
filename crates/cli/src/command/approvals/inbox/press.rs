//! Key bindings of the inbox. Nothing is approved by Enter, a paste, several keys that arrive at once, a key that was typed
//! before its card was shown, or before the end of the card was shown.

use toolgate_model::time::Timestamp;

use super::keyboard::Input;
use super::screen::Layout;
use super::state::{Effect, Inbox, Mode, Purpose, Rule, SETTLING};
use super::text::Tone;
use crate::command::approvals::approval::Approval;
use crate::command::approvals::decide::{ApproverDecision, StandingRequest};
use toolgate_model::approval::RequestedReach as Reach;

const MAX_LINE: usize = 1_000;

impl Inbox {
    /// Handles inputs that arrived together.
    pub(super) fn press(&mut self, inputs: &[Input], now: Timestamp) -> Option<Effect> {
        if inputs.contains(&Input::Interrupt) {
            return Some(Effect::Quit);
        }
        if let Mode::Write { .. } = self.mode {
            return self.write(inputs);
        }
        let is_movement = |input: &Input| {
            matches!(input, Input::Up | Input::Down | Input::PageUp | Input::PageDown | Input::Letter('j' | 'k'))
        };
        match inputs {
            [] | [Input::Paste(_)] => None,
            // These decide nothing.
            [input @ (Input::Escape | Input::Letter('q' | '?'))] => self.one(input, now),
            [input] if is_movement(input) => self.one(input, now),
            [_] if now < self.deaf_until => {
                self.say("the key was ignored, because the card had just changed");
                None
            }
            [input] => self.one(input, now),
            several if several.iter().all(is_movement) => {
                several.iter().find_map(|input| self.one(input, now));
                None
            }
            // An unmarked paste looks like this, and its last part may be a single key.
            _ => {
                self.deaf_until = now.plus(SETTLING);
                self.say("several keys at once were ignored; press one at a time");
                None
            }
        }
    }

    fn one(&mut self, input: &Input, now: Timestamp) -> Option<Effect> {
        self.message = None;
        match (&self.mode, input) {
            (_, Input::PageDown | Input::Letter(' ')) => self.scroll_by(true, now),
            (_, Input::PageUp) => self.scroll_by(false, now),
            (_, Input::Home) => self.scroll = 0,
            (_, Input::End) => self.scroll = self.scroll.saturating_add(self.lines_below(now)),
            (Mode::Confirm { .. }, _) => return self.confirm(input, now),
            (Mode::Help, Input::Letter('q' | '?') | Input::Escape) => self.enter(Mode::Browse),
            (Mode::Browse, _) => return self.browse(input, now),
            (Mode::Help | Mode::Write { .. }, _) => {}
        }
        None
    }

    fn browse(&mut self, input: &Input, now: Timestamp) -> Option<Effect> {
        match input {
            Input::Letter('q') => return Some(Effect::Quit),
            Input::Letter('?') => self.enter(Mode::Help),
            Input::Up | Input::Letter('k') => self.choose(false),
            Input::Down | Input::Letter('j') => self.choose(true),
            Input::Enter => self.say("Enter decides nothing; press o to approve once, d to deny, ? for all keys"),
            Input::Letter(letter @ ('o' | 's' | 'w' | 'u' | 'p' | 'd' | 'r' | 'a')) => {
                return self.decide(*letter, now);
            }
            _ => {}
        }
        None
    }

    fn decide(&mut self, letter: char, now: Timestamp) -> Option<Effect> {
        if self.sending.is_some() {
            self.say("a decision is being sent; wait for its result");
            return None;
        }
        let Some(approval) = self.current().cloned() else {
            self.say("no call waits for approval");
            return None;
        };
        // A denial does not require reading to the end.
        let unread = self.lines_below(now);
        if unread > 0 && !matches!(letter, 'd' | 'r') {
            self.say(&format!("{unread} more lines below; read to the end first (PgDn or End)"));
            return None;
        }
        let id = approval.id.clone();
        match letter {
            'd' => return self.send(id, ApproverDecision::default()),
            'r' => self.enter(Mode::Write { approval: id, purpose: Purpose::Reason, text: String::new() }),
            'a' if approval.question.is_some() => {
                self.enter(Mode::Write { approval: id, purpose: Purpose::Answer, text: String::new() });
            }
            'a' => self.say("this call is not a question; press o to approve it once, or d to deny it"),
            _ if approval.question.is_some() => {
                self.say("this call is a question; press a to answer it, or d to deny it")
            }
            'o' => return self.send(id, ApproverDecision { approve: true, ..ApproverDecision::default() }),
            letter => match rule(letter, &approval) {
                Ok(rule) => self.enter(Mode::Confirm { approval: id, rule }),
                Err(why) => self.say(why),
            },
        }
        None
    }

    fn confirm(&mut self, input: &Input, now: Timestamp) -> Option<Effect> {
        let Mode::Confirm { approval: id, rule } = self.mode.clone() else { return None };
        let leaves = matches!(input, Input::Escape | Input::Letter('n' | 'q'));
        let Some(approval) = self.approval(&id).cloned().filter(|_| !leaves) else {
            // If the approval has ended, only Esc closes the panel: other keys were meant for the approval.
            if leaves {
                self.enter(Mode::Browse);
                self.say("nothing was sent");
            }
            return None;
        };
        match input {
            Input::Letter('y') if self.lines_below(now) > 0 => self.say("read to the end first (PgDn or End)"),
            Input::Letter('y') => {
                let prefix = rule.prefix.and_then(|number| prefixes(&approval).nth(number)).map(str::to_owned);
                // INVARIANT: the request is what the screen shows; a prefix never becomes every call.
                if rule.prefix.is_some() && prefix.is_none() {
                    self.enter(Mode::Browse);
                    self.say("the offer no longer exists; nothing was sent");
                    return None;
                }
                let standing = StandingRequest { prefix, reach: Some(rule.reach), ..StandingRequest::default() };
                self.enter(Mode::Browse);
                return self.send(
                    id,
                    ApproverDecision { approve: true, standing: Some(standing), ..ApproverDecision::default() },
                );
            }
            Input::Letter(letter @ ('s' | 'w' | 'u')) => match reach(*letter, &approval) {
                Ok(reach) => self.enter(Mode::Confirm { approval: id, rule: Rule { reach, ..rule } }),
                Err(why) => self.say(why),
            },
            Input::Letter('p') if rule.prefix.is_some() => {
                let next = rule.prefix.map_or(0, |number| number + 1) % prefixes(&approval).count().max(1);
                self.enter(Mode::Confirm { approval: id, rule: Rule { prefix: Some(next), ..rule } });
            }
            Input::Enter => self.say("Enter decides nothing; press y to confirm, or Esc to cancel"),
            _ => {}
        }
        None
    }

    fn write(&mut self, inputs: &[Input]) -> Option<Effect> {
        let is_gone = self.subject_is_gone();
        let alone = inputs.len() == 1;
        for input in inputs {
            let Mode::Write { approval, purpose, text } = &mut self.mode else { return None };
            match input {
                Input::Escape => {
                    self.enter(Mode::Browse);
                    self.say("nothing was sent");
                    return None;
                }
                _ if is_gone => {}
                Input::Letter(letter) => add(text, *letter),
                Input::Paste(pasted) => pasted.chars().for_each(|letter| add(text, letter)),
                Input::Backspace => {
                    text.pop();
                }
                Input::Enter if alone && text.trim().is_empty() => self.say("the text is empty; Esc goes back"),
                Input::Enter if alone => {
                    let (id, purpose, text) = (approval.clone(), *purpose, text.trim().to_owned());
                    return self.written(id, purpose, &text);
                }
                // Enter among other keys is part of a paste.
                _ => {}
            }
        }
        None
    }

    fn written(&mut self, id: String, purpose: Purpose, text: &str) -> Option<Effect> {
        if self.sending.is_some() {
            self.say("a decision is being sent; wait for its result");
            return None;
        }
        let decision = match purpose {
            Purpose::Reason => ApproverDecision { reason: Some(text.to_owned()), ..ApproverDecision::default() },
            Purpose::Answer => {
                let options = self.approval(&id).and_then(|approval| approval.question.as_ref())?.options();
                ApproverDecision { approve: true, answer: Some(chosen(text, &options)), ..ApproverDecision::default() }
            }
        };
        self.enter(Mode::Browse);
        self.send(id, decision)
    }

    fn send(&mut self, id: String, decision: ApproverDecision) -> Option<Effect> {
        self.sending = Some(id.clone());
        Some(Effect::Decide { id, decision })
    }

    fn enter(&mut self, mode: Mode) {
        self.message = None;
        // The input line is below the card, which stays in place.
        if !matches!(mode, Mode::Write { .. }) && !matches!(self.mode, Mode::Write { .. }) {
            self.scroll = 0;
        }
        self.mode = mode;
    }

    fn choose(&mut self, down: bool) {
        let Some(place) = self.place() else { return };
        let place = if down { place.saturating_add(1) } else { place.saturating_sub(1) };
        if let Some(approval) = self.waiting.get(place) {
            self.selected = Some(approval.id.clone());
            self.scroll = 0;
        }
    }

    fn scroll_by(&mut self, down: bool, now: Timestamp) {
        // Pages overlap by one line.
        let page = Layout::of(self.size, self.waiting.len()).pane.saturating_sub(1).max(1);
        self.scroll = if down {
            self.scroll.saturating_add(page.min(self.lines_below(now)))
        } else {
            self.scroll.saturating_sub(page)
        };
    }

    fn say(&mut self, text: &str) {
        self.message = Some((Tone::Warning, text.to_owned()));
    }
}

/// The option with this text or number, or else the text.
pub(super) fn chosen(text: &str, options: &[String]) -> String {
    if options.iter().any(|option| option == text) {
        return text.to_owned();
    }
    let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number.and_then(|number| options.get(number)).cloned().unwrap_or_else(|| text.to_owned())
}

pub(super) fn prefixes(approval: &Approval) -> impl Iterator<Item = &str> {
    approval.offers.iter().filter_map(|offer| offer.prefix())
}

fn rule(letter: char, approval: &Approval) -> Result<Rule, &'static str> {
    if !approval.coverable || approval.offers.is_empty() {
        return Err("no standing approval can cover this call; press o to approve it once");
    }
    if letter != 'p' {
        return reach(letter, approval).map(|reach| Rule { reach, prefix: None });
    }
    if prefixes(approval).next().is_none() {
        return Err("no prefix is offered for this call; press o to approve it once");
    }
    let reach = if approval.session.is_some() { Reach::Session } else { Reach::User };
    Ok(Rule { reach, prefix: Some(0) })
}

fn reach(letter: char, approval: &Approval) -> Result<Reach, &'static str> {
    let session = approval.session.as_ref();
    match letter {
        's' if session.is_none() => Err("this call has no session"),
        's' => Ok(Reach::Session),
        'w' if session.is_none_or(|session| session.workspace.is_none()) => Err("this call has no directory"),
        'w' => Ok(Reach::Workspace),
        _ => Ok(Reach::User),
    }
}

/// Replaces line ends, and ignores other control characters.
fn add(text: &mut String, letter: char) {
    let letter = if letter == '\n' || letter == '\r' || letter == '\t' { ' ' } else { letter };
    if !letter.is_control() && text.chars().count() < MAX_LINE {
        text.push(letter);
    }
}

#[cfg(test)]
mod tests;
