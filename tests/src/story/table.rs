//! The story as a table.

/// One step.
pub(super) struct Row {
    /// What happens.
    pub(super) step: &'static str,
    /// What was sent.
    pub(super) sent: String,
    /// What should come back.
    pub(super) expected: &'static str,
    /// What came back.
    pub(super) got: String,
    /// Whether that is what should.
    pub(super) ok: bool,
}

/// The rows under a heading, each column as wide as its widest cell.
pub(super) fn render(rows: &[Row]) -> String {
    let heading = ["", "step", "sent", "expected", "came back"].map(str::to_owned);
    let body = rows.iter().map(|row| {
        let verdict = if row.ok { "ok" } else { "FAILED" };
        [verdict.to_owned(), row.step.to_owned(), row.sent.clone(), row.expected.to_owned(), row.got.clone()]
    });
    let lines: Vec<_> = std::iter::once(heading).chain(body).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<_> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
