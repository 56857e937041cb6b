//! The scripts' texts, and a call of one.

use std::sync::LazyLock;

/// A script: its text, and the name that Redis knows it by.
#[derive(Debug)]
pub struct Script {
    /// Its file, without the ending.
    pub name: &'static str,
    /// The text.
    pub source: &'static str,
    pub(crate) redis: LazyLock<redis::Script>,
}

macro_rules! script {
    ($name:literal) => {
        Script {
            name: $name,
            source: include_str!(concat!("../", $name, ".lua")),
            redis: LazyLock::new(|| redis::Script::new(include_str!(concat!("../", $name, ".lua")))),
        }
    };
}

/// `lua/take.lua`: takes from all of a call's limits or from none.
pub(crate) static TAKE: Script = script!("take");
/// `lua/give.lua`: gives tokens back.
pub(crate) static GIVE: Script = script!("give");
/// `lua/reset.lua`: forgets a subject.
pub(crate) static RESET: Script = script!("reset");
/// `lua/override.lua`: gives a subject numbers of its own.
pub(crate) static OVERRIDE: Script = script!("override");
/// `lua/read_override.lua`: a subject's own numbers, and how long they last.
pub(crate) static READ_OVERRIDE: Script = script!("read_override");
/// `lua/ban.lua`: bans a subject by hand.
pub(crate) static BAN: Script = script!("ban");
/// The scripts that calls run, for loading them into a server ahead of the first call.
pub static SCRIPTS: [&Script; 6] = [&TAKE, &GIVE, &RESET, &OVERRIDE, &READ_OVERRIDE, &BAN];
/// `lua/token_bucket.lua`: one bucket in one key, for callers in any language.
pub static TOKEN_BUCKET: Script = script!("token_bucket");

/// One call of a script, ready for any store.
#[derive(Clone, Debug)]
pub struct Call {
    /// The script.
    pub script: &'static Script,
    /// Its KEYS: in one slot, where the store is a cluster.
    pub keys: Vec<String>,
    /// Its ARGV.
    pub args: Vec<String>,
}

impl Call {
    pub(crate) const fn new(script: &'static Script) -> Self {
        Self { script, keys: Vec::new(), args: Vec::new() }
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.args.push(number.to_string());
    }

    pub(crate) fn word(&mut self, word: &str) {
        self.args.push(word.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    /// Joins a script from its parts: a line `--@include FILE` stands for that file.
    fn join(name: &str) -> String {
        let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("parts");
        let part = |file: &str| fs::read_to_string(parts.join(file)).unwrap();
        part(name)
            .split_inclusive('\n')
            .map(|line| match line.strip_prefix("--@include ") {
                Some(file) => part(file.trim_end()) + "\n",
                None => line.to_owned(),
            })
            .collect()
    }

    /// `SLUICEGATE_JOIN=1 cargo test -p sluicegate-lua published` writes the published files anew.
    #[test]
    fn published_scripts_equal_their_parts() {
        for name in
            ["take.lua", "give.lua", "reset.lua", "override.lua", "read_override.lua", "ban.lua", "token_bucket.lua"]
        {
            let published = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            if env::var_os("SLUICEGATE_JOIN").is_some() {
                fs::write(&published, join(name)).unwrap();
            }
            let text = fs::read_to_string(&published).unwrap();
            assert!(text == join(name), "lua/{name} differs from lua/parts: run this test with SLUICEGATE_JOIN=1");
        }
    }
}
