//! Columns for people.

/// A table with a heading; numbers are aligned to the right, columns that hold nothing are left out.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned).to_vec()] }
    }

    pub(super) fn row<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.into());
    }

    /// The table's lines, each ending in a line end.
    pub(super) fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let layout: Vec<_> = (0..columns)
            .filter(|&column| self.rows.len() == 1 || cells(column).skip(1).any(|cell| !cell.is_empty()))
            .map(|column| {
                let width = cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
                let numeric = cells(column).skip(1).all(|cell| cell.starts_with(|first: char| first.is_ascii_digit()));
                (column, width, numeric)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for &(column, width, numeric) in &layout {
                let cell = row.get(column).map_or("", String::as_str);
                let padded = if numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                line.push_str(&padded);
                line.push_str("  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A duration as people say it, of at most two units: 850ms, 12s, 1h 5m.
pub(super) fn duration(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms}ms");
    }
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    // Rounded up, as a wait is: what it says has then passed.
    let mut left_ms = if ms < 60_000 { ms.div_ceil(1_000) * 1_000 } else { ms };
    let mut words = Vec::new();
    for (unit_ms, unit) in units {
        let count = left_ms / unit_ms;
        left_ms %= unit_ms;
        if words.len() == 1 || count > 0 {
            words.push((count, unit));
        }
        if words.len() == 2 {
            break;
        }
    }
    let said = words.into_iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}"));
    said.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (ms, said) in [
            (0, "0ms"),
            (850, "850ms"),
            (1_001, "2s"),
            (59_001, "1m"),
            (61_000, "1m 1s"),
            (3_600_000, "1h"),
            (3_605_000, "1h"),
            (90_061_000, "1d 1h"),
        ] {
            assert_eq!(duration(ms), said, "{ms}");
        }
    }

    #[test]
    fn numbers_go_right_and_empty_columns_go() {
        let mut table = Table::new(["NAME", "COUNT", "NOTE"]);
        table.row(["a".into(), "5".into(), String::new()]);
        table.row(["long".into(), "1234567".into(), String::new()]);
        assert_eq!(table.text(), "NAME    COUNT\na           5\nlong  1234567\n");
    }
}
