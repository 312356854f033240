//! Makes up command lines: well-formed ones, ones with a few changes, and heaps of fragments. The same seed makes the
//! same lines. None of them can name a program that exists: a slash stands only in `/dev/null`.

/// What programs are called, granted and not.
const HEADS: &[&str] = &[
    "cargo",
    "cargo",
    "cargo build",
    "cargo",
    "tool run",
    "x",
    "x",
    "evil",
    "tool",
    "cargo-evil",
    "eval evil",
    "exec evil",
    "if",
    "time",
    "!",
    "evil=1",
    "coproc",
    "builtin evil",
    "command evil",
    "'cargo'",
    "c\\argo",
];

/// What arguments look like.
const WORDS: &[&str] = &[
    "a",
    "build",
    "--release",
    "-x",
    "a=b",
    "1",
    "2",
    "''",
    "'a b'",
    "'; evil'",
    "\"a b\"",
    "\"; evil\"",
    "\"a\\\"b\"",
    "\"\\\\\"",
    "'\\'",
    "\\;",
    "\\ ",
    "\\ #",
    "a\\ b",
    "a#b",
    "==",
    "=~",
    "]]",
    "\"#\"",
    "'$(evil)'",
    "\"\\$(evil)\"",
    "\"\\`evil\\`\"",
    "\\$",
    "\\`",
    "\"a\\b\"",
    "\"a\nb\"",
    "'a\nb'",
    "\"a\\\nb\"",
    "a\\\nb",
    "größe",
    "'✓'",
    "a~",
    "^~2",
    "a:b",
    "@a",
    "%1",
    "+x",
    "then",
    "do",
    "fi",
    "done",
    "esac",
    "in",
    "\"!\"",
    "\\!",
    "\\{a,b\\}",
    "\\*",
    "-",
    "--",
    ",",
    "''''",
    "\"\"a",
];

/// What may stand after the words.
const TAILS: &[&str] = &[
    "",
    "",
    "",
    "",
    " 2>&1",
    " >/dev/null",
    " > /dev/null",
    " 2> /dev/null",
    " >&2",
    " 1>&2",
    ">/dev/null",
    "2>&1",
    " >/dev/null 2>&1",
    " # evil",
    " #",
    " # ; evil '",
    " \\\n",
    " # a \\",
];

/// What joins commands.
const JOINTS: &[&str] = &[
    ";",
    " ; ",
    "\n",
    "\n\n",
    " && ",
    "&&",
    " || ",
    "||",
    " | ",
    "|",
    " &&\n",
    " |\n\n",
    "\\\n;",
    " && # a\n",
    ";\n",
    " & ",
    "|&",
];

/// Pieces that change the meaning of what stands around them.
const FRAGMENTS: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\n",
    "\\\n",
    " ",
    "\t",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "#",
    " #",
    "$",
    "`",
    "(",
    ")",
    "$(",
    "{",
    "}",
    "[",
    "]",
    "*",
    "?",
    "~",
    "!",
    "<",
    ">",
    ">>",
    "<<",
    "<<<",
    "<(",
    ">(",
    ">&",
    "<&",
    ">|",
    "&>",
    "=",
    "==",
    "=~",
    "evil",
    " evil ",
    "; evil",
    "\nevil\n",
    "cargo ",
    "x ",
    "2>",
    "1",
    "2",
    "/dev/null",
    "{a,b}",
    "{evil,}",
    "{1..2}",
    "a=~",
    ":~",
    "$'",
    "$\"",
    "${",
    "$((",
    "((",
    "[[",
    "]]",
    ";;",
    "\\'",
    "\\\"",
    "\\\\",
    "é",
    "à",
    "\u{a0}",
    "\u{200b}",
    "\r",
    "function ",
    "case ",
    " in ",
    " esac",
    "do ",
    "then ",
    "EOF",
    "<<EOF\n",
    "^",
    "%",
    "@(",
];

/// Lines without end, the same for the same seed.
pub struct Generator {
    state: u64,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn line(&mut self) -> String {
        match self.below(10) {
            0..4 => self.list(),
            4..9 => {
                let mut line = self.list();
                for _ in 0..=self.below(3) {
                    self.change(&mut line);
                }
                line
            }
            _ => (0..=self.below(12)).map(|_| self.any()).collect(),
        }
    }

    /// Commands, joined.
    fn list(&mut self) -> String {
        let mut line = self.command();
        for _ in 0..self.below(4) {
            line.push_str(self.one_of(JOINTS));
            line.push_str(&self.command());
        }
        if self.below(8) == 0 {
            line.push_str(self.one_of(&[";", "\n", " ", " &&", "\\", " ;\n"]));
        }
        line
    }

    fn command(&mut self) -> String {
        // Mostly granted ones: a line with any other is refused at once, and teaches little.
        let among = if self.below(4) == 0 { HEADS.len() } else { 7 };
        let mut command = HEADS[self.below(among)].to_owned();
        for _ in 0..self.below(4) {
            command.push_str(self.one_of(&[" ", " ", " ", "  ", "\t", " \\\n"]));
            command.push_str(self.one_of(WORDS));
            if self.below(4) == 0 {
                command.push_str(self.one_of(WORDS));
            }
        }
        command.push_str(self.one_of(TAILS));
        command
    }

    /// Puts in, takes out or doubles a piece.
    fn change(&mut self, line: &mut String) {
        let place = self.place(line);
        match self.below(4) {
            0 => {
                let end = line[place..].chars().next().map_or(place, |letter| place + letter.len_utf8());
                line.replace_range(place..end, "");
            }
            1 => {
                let end = self.place(line).max(place);
                let copy = line[place..end].to_owned();
                let target = self.place(line);
                line.insert_str(target, &copy);
            }
            _ => {
                let piece = self.any();
                line.insert_str(place, piece);
            }
        }
    }

    fn any(&mut self) -> &'static str {
        match self.below(6) {
            0 => self.one_of(WORDS),
            1 => self.one_of(HEADS),
            2 => self.one_of(JOINTS),
            _ => self.one_of(FRAGMENTS),
        }
    }

    /// Somewhere between two letters.
    fn place(&mut self, line: &str) -> usize {
        let places: Vec<usize> = line.char_indices().map(|(place, _)| place).chain([line.len()]).collect();
        places[self.below(places.len())]
    }

    fn one_of(&mut self, pieces: &[&'static str]) -> &'static str {
        pieces[self.below(pieces.len())]
    }

    /// A number from 0 up to the limit, which is left out. The generator is SplitMix64.
    fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(limit).unwrap()).unwrap()
    }
}
