//! The names in a PromQL expression. That the expression is well formed is Prometheus's to say; the crate that parses
//! PromQL brings thirty others.

/// What an expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Each metric with the labels that it is chosen by.
    pub(super) metrics: Vec<(String, Vec<String>)>,
    /// Labels that it is grouped or joined by.
    pub(super) grouping: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text,
    Sign(char),
}

/// Words that take a list of labels in parentheses.
const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 6] = ["and", "or", "unless", "bool", "offset", "atan2"];

pub(super) fn names(expression: &str) -> Names {
    let tokens = tokens(expression);
    let mut names = Names::default();
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            Token::Word(word) if GROUPING.contains(&word.as_str()) && rest.peek() == Some(&&Token::Sign('(')) => {
                names
                    .grouping
                    .extend(rest.by_ref().take_while(|token| **token != Token::Sign(')')).filter_map(word_of));
            }
            Token::Word(word) if OPERATORS.contains(&word.as_str()) => {}
            // A function.
            Token::Word(_) if rest.peek() == Some(&&Token::Sign('(')) => {}
            // An aggregation whose labels come first, as in `sum by (le) (…)`.
            Token::Word(_) if matches!(rest.peek(), Some(Token::Word(next)) if GROUPING.contains(&next.as_str())) => {}
            Token::Word(metric) => {
                let mut labels = Vec::new();
                if rest.next_if_eq(&&Token::Sign('{')).is_some() {
                    labels.extend(rest.by_ref().take_while(|token| **token != Token::Sign('}')).filter_map(word_of));
                }
                names.metrics.push((metric.clone(), labels));
            }
            Token::Text | Token::Sign(_) => {}
        }
    }
    names
}

fn word_of(token: &Token) -> Option<String> {
    if let Token::Word(word) = token { Some(word.clone()) } else { None }
}

fn tokens(expression: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = expression.chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            '"' | '\'' | '`' => {
                while let Some(next) = rest.next().filter(|next| *next != first) {
                    if next == '\\' && first != '`' {
                        rest.next();
                    }
                }
                tokens.push(Token::Text);
            }
            // A range.
            '[' => while rest.next().is_some_and(|next| next != ']') {},
            // A number or a duration.
            '0'..='9' | '.' => while rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '.').is_some() {},
            'a'..='z' | 'A'..='Z' | '_' | ':' => {
                let mut word = String::from(first);
                while let Some(next) = rest.next_if(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | ':')) {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
            sign if sign.is_whitespace() => {}
            sign => tokens.push(Token::Sign(sign)),
        }
    }
    tokens
}

#[track_caller]
fn check(expression: &str, metrics: &[(&str, &[&str])], grouping: &[&str]) {
    let owned = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect::<Vec<_>>();
    let metrics = metrics.iter().map(|(metric, labels)| ((*metric).to_owned(), owned(labels))).collect();
    assert_eq!(names(expression), Names { metrics, grouping: owned(grouping) });
}

#[test]
fn metrics_and_labels_are_told_from_all_else() {
    check("up", &[("up", &[])], &[]);
    check(r#"rate(a_total{x="}",y=~'b|c',z!="\""}[5m])"#, &[("a_total", &["x", "y", "z"])], &[]);
    check("histogram_quantile(0.99, sum by (le, by) (rate(a_bucket[5m]))) > 1e-9", &[("a_bucket", &[])], &["le", "by"]);
    check("sum(a) by (x) / b{} or vector(0)", &[("a", &[]), ("b", &[])], &["x"]);
    check(
        "a * on (i) group_left (v) label_replace(b, \"x\", \"$1\", \"y\", \"(.*)\")",
        &[("a", &[]), ("b", &[])],
        &["i", "v"],
    );
    check("time() - a{x=\"1\"} and on (i) b offset 5m", &[("a", &["x"]), ("b", &[])], &["i"]);
}
