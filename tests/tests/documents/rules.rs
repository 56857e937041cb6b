//! The rules that pages are written by, each tried on a page that keeps and one that breaks it.

use libtest_mimic::{Failed, Trial};
use sluicegate_tests::{Page, Place, Role, same_output};

use crate::{checkout::Checkout, machine::Machine};

/// A test by its name.
type Test = (&'static str, fn());

const TESTS: [Test; 9] = [
    ("rules::a_block_is_what_its_language_and_its_comments_say", blocks),
    ("rules::a_block_that_no_rule_covers_is_refused", uncovered),
    ("rules::each_place_has_blocks_of_its_own", places),
    ("rules::output_is_compared", output),
    ("rules::what_differs_from_run_to_run_is_not", volatile),
    ("rules::a_failed_command_fails_the_page", failed),
    ("rules::an_output_that_is_not_shown_fails_the_page", other_output),
    ("rules::one_bash_runs_the_page", one_bash),
    ("rules::nothing_of_a_page_outlives_it", nothing_left),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, test): Test| {
        Trial::test(name, move || {
            test();
            Ok::<_, Failed>(())
        })
    };
    TESTS.into_iter().map(trial).collect()
}

fn page(text: &str) -> Page {
    Page::parse("docs/page.md", text).unwrap()
}

fn run(text: &str) -> Result<(), String> {
    let (checkout, machine) = (Checkout::new().unwrap(), Machine::new().unwrap());
    let shell = machine.shell(checkout.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let page = checkout.patient_page(page(text));
    runtime.block_on(page.run(&Place::Here, shell, machine.folder())).map_err(|error| format!("{error:?}"))
}

fn blocks() {
    let page = page(
        "# Page\n\n```sh\nls\n```\n\n1. item\n\n   <!-- file: a/b.yaml -->\n   ```yaml\n   x:\n     y: 1\n   ```\n\n\
         ```json\n{}\n```\n\n<!-- run\nls -l\n-->\n",
    );
    let [commands, file, text, hidden] = page.blocks.as_slice() else { panic!("{page:?}") };
    assert_eq!((commands.line, &commands.role), (3, &Role::Commands("ls\n".into())));
    assert_eq!(hidden.role, Role::Commands("ls -l\n".into()));
    assert_eq!(file.role, Role::File { name: "a/b.yaml".into(), text: "x:\n  y: 1\n".into() });
    assert_eq!(text.role, Role::Text { language: "json".into(), text: "{}\n".into() });
}

fn uncovered() {
    for (text, words) in [
        ("```bash\nls\n```\n", "bash"),
        ("```zsh title\nls\n```\n", "zsh"),
        ("\n```\nls\n```\n", "line 2"),
        ("```sh\nls\n", "no end"),
        ("```console\nls\n```\n", "begins with"),
        ("<!-- dokcer -->\n```sh\nls\n```\n", "dokcer"),
        ("<!-- file: ../x -->\n```yaml\n```\n", "../x"),
        ("<!-- file: /etc/x -->\n```yaml\n```\n", "/etc/x"),
    ] {
        let error = format!("{:?}", Page::parse("docs/page.md", text).unwrap_err());
        assert!(error.contains(words), "{error}");
    }
}

fn places() {
    let text = "```sh\nhere\n```\n<!-- docker -->\n```sh\ndocker\n```\n<!-- cluster: kubernetes -->\n```sh\nkubectl\n```\n\
                <!-- docker -->\n<!-- file: x -->\n```text\nx\n```\n";
    let page = page(text);
    let lines = |place| page.blocks_in(&place).map(|block| block.line).collect::<Vec<_>>();
    assert_eq!(lines(Place::Here), [1]);
    assert_eq!(lines(Place::Docker), [5, 14]);
    assert_eq!(lines(Place::Cluster("kubernetes".into())), [9]);
}

fn output() {
    for (shown, real, same) in [
        ("a\nb\n", "a\nb\n", true),
        ("a\n", "a\nb\n", false),
        ("a\nb\n", "a\n", false),
        ("", "", true),
        ("", "a\n", false),
        ("...\nb\n", "a\na\nb\n", true),
        ("a\n...\n", "a\n", true),
        ("a\n...\nc\n", "a\nb\n", false),
        ("{\"x\":...}\n", "{\"x\":1,\"y\":2}\n", true),
        ("x ... z ...\n", "x y z 1\n", true),
        ("x ... y\n", "x y\n", false),
    ] {
        assert_eq!(same_output(shown, real), same, "{shown:?} {real:?}");
    }
}

fn volatile() {
    for (shown, real, same) in [
        ("HTTP/1.1 200 OK\nx: 1\n", "HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026\r\nserver: envoy\r\nx: 1\r\n", true),
        ("ratelimit: \"burst\";r=9;t=1\n", "ratelimit: \"burst\";r=9;t=12\n", true),
        ("ratelimit: \"burst\";r=9;t=1\n", "ratelimit: \"burst\";r=8;t=1\n", false),
        ("retry-after: 1\n", "retry-after: 20\n", true),
        ("\"next_ms\":20000\n", "\"next_ms\":19998\n", true),
        ("\"remaining\":2\n", "\"remaining\":1\n", false),
        ("LIMIT  NEXT IN\nburst  14s\n", "LIMIT     NEXT IN\nburst  1m 4s\n", true),
        ("until 2026-11-30T12:00:00Z\n", "until 2027-01-02T03:04:05Z\n", true),
        ("version: 95c997931060\n", "version: 0123456789ab\n", true),
    ] {
        assert_eq!(same_output(shown, real), same, "{shown:?} {real:?}");
    }
}

fn failed() {
    for block in [
        "```sh\nfalse\n```\n",
        "```sh\nfalse | true\n```\n",
        "```console\n$ exit 3\n```\n",
        "```console\n$ false\n```\n",
    ] {
        let error = run(&format!("# Page\n\n{block}")).unwrap_err();
        assert!(error.contains("docs/page.md:3"), "{error}");
    }
}

fn other_output() {
    let error = run("```console\n$ echo one\none\n$ echo two\nthree\n```\n").unwrap_err();
    for words in ["echo two", "--- the page shows ---\nthree", "--- it says ---\ntwo"] {
        assert!(error.contains(words), "{error}");
    }
}

fn one_bash() {
    run("```sh\nmkdir -p other; cd other; name=value\n```\n<!-- file: d/x.yaml -->\n```yaml\nstore: { timeout: 25ms }\n```\n\
         ```console\n$ cat ../d/x.yaml; echo $name\nstore: { timeout: 500ms }\nvalue\n$ cat gone\ncat: gone: ...\n$ echo $?\n1\n\
         $ for n in 1 2; do\n>   echo $n\n> done\n1\n2\n\
         $ echo a \\\n    b\na b\n```\n")
    .unwrap();
}

/// The port is the one that pages name, in two pages at once, and again when they are done.
fn nothing_left() {
    let text = "```sh\nredis-server --save '' --port 6379 > redis.log &\n\
                until redis-cli ping; do true; done\nredis-cli set who me\n```\n\
                ```console\n$ redis-cli dbsize\n1\n```\n";
    std::thread::scope(|scope| {
        let both = [scope.spawn(|| run(text)), scope.spawn(|| run(text))];
        both.into_iter().for_each(|one| one.join().unwrap().unwrap());
    });
    run(text).unwrap();
}
