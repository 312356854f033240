//! Named character references of HTML: those of HTML 4, and all of HTML 5 for ASCII characters.

/// No name is longer.
pub(super) const MAX_NAME: usize = 16;

/// Names that browsers also read without a semicolon, sorted.
#[rustfmt::skip]
const LOOSE: [(&str, &str); 106] = [
    ("AElig", "\u{c6}"), ("AMP", "&"), ("Aacute", "\u{c1}"), ("Acirc", "\u{c2}"), ("Agrave", "\u{c0}"),
    ("Aring", "\u{c5}"), ("Atilde", "\u{c3}"), ("Auml", "\u{c4}"), ("COPY", "\u{a9}"), ("Ccedil", "\u{c7}"),
    ("ETH", "\u{d0}"), ("Eacute", "\u{c9}"), ("Ecirc", "\u{ca}"), ("Egrave", "\u{c8}"), ("Euml", "\u{cb}"),
    ("GT", ">"), ("Iacute", "\u{cd}"), ("Icirc", "\u{ce}"), ("Igrave", "\u{cc}"), ("Iuml", "\u{cf}"), ("LT", "<"),
    ("Ntilde", "\u{d1}"), ("Oacute", "\u{d3}"), ("Ocirc", "\u{d4}"), ("Ograve", "\u{d2}"), ("Oslash", "\u{d8}"),
    ("Otilde", "\u{d5}"), ("Ouml", "\u{d6}"), ("QUOT", "\""), ("REG", "\u{ae}"), ("THORN", "\u{de}"),
    ("Uacute", "\u{da}"), ("Ucirc", "\u{db}"), ("Ugrave", "\u{d9}"), ("Uuml", "\u{dc}"), ("Yacute", "\u{dd}"),
    ("aacute", "\u{e1}"), ("acirc", "\u{e2}"), ("acute", "\u{b4}"), ("aelig", "\u{e6}"), ("agrave", "\u{e0}"),
    ("amp", "&"), ("aring", "\u{e5}"), ("atilde", "\u{e3}"), ("auml", "\u{e4}"), ("brvbar", "\u{a6}"),
    ("ccedil", "\u{e7}"), ("cedil", "\u{b8}"), ("cent", "\u{a2}"), ("copy", "\u{a9}"), ("curren", "\u{a4}"),
    ("deg", "\u{b0}"), ("divide", "\u{f7}"), ("eacute", "\u{e9}"), ("ecirc", "\u{ea}"), ("egrave", "\u{e8}"),
    ("eth", "\u{f0}"), ("euml", "\u{eb}"), ("frac12", "\u{bd}"), ("frac14", "\u{bc}"), ("frac34", "\u{be}"),
    ("gt", ">"), ("iacute", "\u{ed}"), ("icirc", "\u{ee}"), ("iexcl", "\u{a1}"), ("igrave", "\u{ec}"),
    ("iquest", "\u{bf}"), ("iuml", "\u{ef}"), ("laquo", "\u{ab}"), ("lt", "<"), ("macr", "\u{af}"),
    ("micro", "\u{b5}"), ("middot", "\u{b7}"), ("nbsp", "\u{a0}"), ("not", "\u{ac}"), ("ntilde", "\u{f1}"),
    ("oacute", "\u{f3}"), ("ocirc", "\u{f4}"), ("ograve", "\u{f2}"), ("ordf", "\u{aa}"), ("ordm", "\u{ba}"),
    ("oslash", "\u{f8}"), ("otilde", "\u{f5}"), ("ouml", "\u{f6}"), ("para", "\u{b6}"), ("plusmn", "\u{b1}"),
    ("pound", "\u{a3}"), ("quot", "\""), ("raquo", "\u{bb}"), ("reg", "\u{ae}"), ("sect", "\u{a7}"),
    ("shy", "\u{ad}"), ("sup1", "\u{b9}"), ("sup2", "\u{b2}"), ("sup3", "\u{b3}"), ("szlig", "\u{df}"),
    ("thorn", "\u{fe}"), ("times", "\u{d7}"), ("uacute", "\u{fa}"), ("ucirc", "\u{fb}"), ("ugrave", "\u{f9}"),
    ("uml", "\u{a8}"), ("uuml", "\u{fc}"), ("yacute", "\u{fd}"), ("yen", "\u{a5}"), ("yuml", "\u{ff}"),
];

/// Names that need the semicolon, sorted.
#[rustfmt::skip]
const STRICT: [(&str, &str); 190] = [
    ("Alpha", "\u{391}"), ("Beta", "\u{392}"), ("Chi", "\u{3a7}"), ("Dagger", "\u{2021}"), ("Delta", "\u{394}"),
    ("DiacriticalGrave", "`"), ("Epsilon", "\u{395}"), ("Eta", "\u{397}"), ("Gamma", "\u{393}"), ("Hat", "^"),
    ("Iota", "\u{399}"), ("Kappa", "\u{39a}"), ("Lambda", "\u{39b}"), ("Mu", "\u{39c}"), ("NewLine", "\n"),
    ("Nu", "\u{39d}"), ("OElig", "\u{152}"), ("Omega", "\u{3a9}"), ("Omicron", "\u{39f}"), ("Phi", "\u{3a6}"),
    ("Pi", "\u{3a0}"), ("Prime", "\u{2033}"), ("Psi", "\u{3a8}"), ("Rho", "\u{3a1}"), ("Scaron", "\u{160}"),
    ("Sigma", "\u{3a3}"), ("Tab", "\t"), ("Tau", "\u{3a4}"), ("Theta", "\u{398}"), ("UnderBar", "_"),
    ("Upsilon", "\u{3a5}"), ("VerticalLine", "|"), ("Xi", "\u{39e}"), ("Yuml", "\u{178}"), ("Zeta", "\u{396}"),
    ("alefsym", "\u{2135}"), ("alpha", "\u{3b1}"), ("and", "\u{2227}"), ("ang", "\u{2220}"), ("apos", "'"),
    ("ast", "*"), ("asymp", "\u{2248}"), ("bdquo", "\u{201e}"), ("beta", "\u{3b2}"), ("bsol", "\\"),
    ("bull", "\u{2022}"), ("cap", "\u{2229}"), ("chi", "\u{3c7}"), ("circ", "\u{2c6}"), ("clubs", "\u{2663}"),
    ("colon", ":"), ("comma", ","), ("commat", "@"), ("cong", "\u{2245}"), ("crarr", "\u{21b5}"), ("cup", "\u{222a}"),
    ("dArr", "\u{21d3}"), ("dagger", "\u{2020}"), ("darr", "\u{2193}"), ("delta", "\u{3b4}"), ("diams", "\u{2666}"),
    ("dollar", "$"), ("empty", "\u{2205}"), ("emsp", "\u{2003}"), ("ensp", "\u{2002}"), ("epsilon", "\u{3b5}"),
    ("equals", "="), ("equiv", "\u{2261}"), ("eta", "\u{3b7}"), ("euro", "\u{20ac}"), ("excl", "!"),
    ("exist", "\u{2203}"), ("fjlig", "fj"), ("fnof", "\u{192}"), ("forall", "\u{2200}"), ("frasl", "\u{2044}"),
    ("gamma", "\u{3b3}"), ("ge", "\u{2265}"), ("grave", "`"), ("hArr", "\u{21d4}"), ("harr", "\u{2194}"),
    ("hearts", "\u{2665}"), ("hellip", "\u{2026}"), ("image", "\u{2111}"), ("infin", "\u{221e}"), ("int", "\u{222b}"),
    ("iota", "\u{3b9}"), ("isin", "\u{2208}"), ("kappa", "\u{3ba}"), ("lArr", "\u{21d0}"), ("lambda", "\u{3bb}"),
    ("lang", "\u{2329}"), ("larr", "\u{2190}"), ("lbrace", "{"), ("lbrack", "["), ("lceil", "\u{2308}"),
    ("lcub", "{"), ("ldquo", "\u{201c}"), ("le", "\u{2264}"), ("lfloor", "\u{230a}"), ("lowast", "\u{2217}"),
    ("lowbar", "_"), ("loz", "\u{25ca}"), ("lpar", "("), ("lrm", "\u{200e}"), ("lsaquo", "\u{2039}"), ("lsqb", "["),
    ("lsquo", "\u{2018}"), ("mdash", "\u{2014}"), ("midast", "*"), ("minus", "\u{2212}"), ("mu", "\u{3bc}"),
    ("nabla", "\u{2207}"), ("ndash", "\u{2013}"), ("ne", "\u{2260}"), ("ni", "\u{220b}"), ("notin", "\u{2209}"),
    ("nsub", "\u{2284}"), ("nu", "\u{3bd}"), ("num", "#"), ("oelig", "\u{153}"), ("oline", "\u{203e}"),
    ("omega", "\u{3c9}"), ("omicron", "\u{3bf}"), ("oplus", "\u{2295}"), ("or", "\u{2228}"), ("otimes", "\u{2297}"),
    ("part", "\u{2202}"), ("percnt", "%"), ("period", "."), ("permil", "\u{2030}"), ("perp", "\u{22a5}"),
    ("phi", "\u{3c6}"), ("pi", "\u{3c0}"), ("piv", "\u{3d6}"), ("plus", "+"), ("prime", "\u{2032}"),
    ("prod", "\u{220f}"), ("prop", "\u{221d}"), ("psi", "\u{3c8}"), ("quest", "?"), ("rArr", "\u{21d2}"),
    ("radic", "\u{221a}"), ("rang", "\u{232a}"), ("rarr", "\u{2192}"), ("rbrace", "}"), ("rbrack", "]"),
    ("rceil", "\u{2309}"), ("rcub", "}"), ("rdquo", "\u{201d}"), ("real", "\u{211c}"), ("rfloor", "\u{230b}"),
    ("rho", "\u{3c1}"), ("rlm", "\u{200f}"), ("rpar", ")"), ("rsaquo", "\u{203a}"), ("rsqb", "]"),
    ("rsquo", "\u{2019}"), ("sbquo", "\u{201a}"), ("scaron", "\u{161}"), ("sdot", "\u{22c5}"), ("semi", ";"),
    ("sigma", "\u{3c3}"), ("sigmaf", "\u{3c2}"), ("sim", "\u{223c}"), ("sol", "/"), ("spades", "\u{2660}"),
    ("sub", "\u{2282}"), ("sube", "\u{2286}"), ("sum", "\u{2211}"), ("sup", "\u{2283}"), ("supe", "\u{2287}"),
    ("tau", "\u{3c4}"), ("there4", "\u{2234}"), ("theta", "\u{3b8}"), ("thetasym", "\u{3d1}"), ("thinsp", "\u{2009}"),
    ("tilde", "\u{2dc}"), ("trade", "\u{2122}"), ("uArr", "\u{21d1}"), ("uarr", "\u{2191}"), ("upsih", "\u{3d2}"),
    ("upsilon", "\u{3c5}"), ("verbar", "|"), ("vert", "|"), ("weierp", "\u{2118}"), ("xi", "\u{3be}"),
    ("zeta", "\u{3b6}"), ("zwj", "\u{200d}"), ("zwnj", "\u{200c}"),
];

/// The meaning of this name with a semicolon.
pub(super) fn character(name: &[u8]) -> Option<&'static str> {
    loose(name).or_else(|| find(&STRICT, name))
}

/// The meaning of this name without a semicolon.
pub(super) fn loose(name: &[u8]) -> Option<&'static str> {
    find(&LOOSE, name)
}

fn find(names: &'static [(&str, &str)], name: &[u8]) -> Option<&'static str> {
    let found = names.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
    names.get(found).map(|(_, character)| *character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        for table in [LOOSE.as_slice(), &STRICT] {
            assert!(table.is_sorted_by(|(one, _), (next, _)| one < next));
            assert!(table.iter().all(|(name, _)| name.len() <= MAX_NAME));
        }
        assert_eq!(character(b"lowbar"), Some("_"));
        assert_eq!(character(b"AMP"), Some("&"));
        assert_eq!((loose(b"lt"), loose(b"lowbar"), character(b"unheard")), (Some("<"), None, None));
    }
}
