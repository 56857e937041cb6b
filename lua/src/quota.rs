//! Calendar quotas: so many tokens in each minute, hour, day, week or month of a time zone.

use std::fmt;

use jiff::{Timestamp, ZonedDateTime, civil::Weekday, tz::TimeZone};

/// The largest quota, 2^53 − 1: what a Lua number counts exactly.
const MAX_QUOTA: u64 = (1 << 53) - 1;

/// The length of a quota's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Every {
    /// From :00 of a minute.
    Minute,
    /// From the full hour.
    Hour,
    /// From midnight, or the first instant of a day that has none.
    Day,
    /// From Monday (ISO 8601).
    Week,
    /// From the first of the month.
    Month,
}

impl Every {
    /// All of them, from the shortest.
    pub const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month];

    /// The word used in configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

impl std::str::FromStr for Every {
    type Err = QuotaError;

    fn from_str(word: &str) -> Result<Self, QuotaError> {
        Self::ALL.into_iter().find(|every| every.as_str() == word).ok_or_else(|| QuotaError::Every(word.to_owned()))
    }
}

/// A quota: at most this many tokens in each window.
#[derive(Clone, PartialEq, Eq)]
pub struct Quota {
    quota: u64,
    every: Every,
    zone: TimeZone,
}

impl fmt::Debug for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} every {} in {}", self.quota, self.every.as_str(), self.zone())
    }
}

impl Quota {
    /// A quota in the windows of an IANA time zone such as `Europe/Paris`.
    pub fn new(quota: u64, every: Every, zone: &str) -> Result<Self, QuotaError> {
        if quota == 0 || quota > MAX_QUOTA {
            return Err(QuotaError::Quota(quota));
        }
        let zone = TimeZone::get(zone).map_err(|_| QuotaError::Zone(zone.to_owned()))?;
        Ok(Self { quota, every, zone })
    }

    /// The tokens of one window.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// The length of the windows.
    #[must_use]
    pub const fn every(&self) -> Every {
        self.every
    }

    /// The IANA name of the time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// This quota with another number.
    pub(crate) fn with_quota(&self, quota: u64) -> Self {
        Self { quota, ..self.clone() }
    }

    /// Where windows begin around `now_ms`, ascending: the window before the current one, the current one, and two
    /// after it. None when the calendar ends (the year 9999).
    pub(crate) fn boundaries(&self, now_ms: u64) -> Option<[u64; 5]> {
        let start = self.start_of(Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?)?;
        let before = self.start_of(start.checked_sub(jiff::SignedDuration::from_nanos(1)).ok()?)?;
        let next = self.next(start)?;
        let second = self.next(next)?;
        let third = self.next(second)?;
        let ms = |boundary: Timestamp| u64::try_from(boundary.as_millisecond()).ok();
        Some([ms(before)?, ms(start)?, ms(next)?, ms(second)?, ms(third)?])
    }

    /// The start of the window that holds `time`.
    fn start_of(&self, time: Timestamp) -> Option<Timestamp> {
        match self.unit_s() {
            Some(unit_s) => self.last_whole(time, unit_s),
            None => self.day_of_window(time, 0),
        }
    }

    /// The first window start after `start`, itself a window start.
    fn next(&self, start: Timestamp) -> Option<Timestamp> {
        match self.unit_s() {
            Some(unit_s) => self.next_whole(start, unit_s),
            None => self.day_of_window(start, 1),
        }
    }

    /// The unit of windows that follow the clock; none for those that follow the calendar.
    const fn unit_s(&self) -> Option<i64> {
        match self.every {
            Every::Minute => Some(60),
            Every::Hour => Some(3_600),
            Every::Day | Every::Week | Every::Month => None,
        }
    }

    /// The last instant not after `time` at which the local clock shows a whole unit. A shift of the clock by less
    /// than a unit makes one window longer instead of two out of step.
    fn last_whole(&self, time: Timestamp, unit_s: i64) -> Option<Timestamp> {
        let mut time_s = time.as_second();
        loop {
            let whole_s = time_s - self.past_unit(time_s, unit_s)?;
            // A transition is the first instant of its new offset; `preceding` excludes the time it is asked about.
            let after = Timestamp::from_second(time_s + 1).ok()?;
            match self.zone.preceding(after).next().map(|transition| transition.timestamp().as_second()) {
                Some(shift_s) if shift_s > whole_s => {
                    if self.past_unit(shift_s, unit_s)? == 0 {
                        return Timestamp::from_second(shift_s).ok();
                    }
                    time_s = shift_s - 1;
                }
                _ => return Timestamp::from_second(whole_s).ok(),
            }
        }
    }

    /// The first instant after `start` at which the local clock shows a whole unit.
    fn next_whole(&self, start: Timestamp, unit_s: i64) -> Option<Timestamp> {
        let mut from_s = start.as_second();
        loop {
            let whole_s = from_s + unit_s - self.past_unit(from_s, unit_s)?;
            let from = Timestamp::from_second(from_s).ok()?;
            match self.zone.following(from).next().map(|transition| transition.timestamp().as_second()) {
                Some(shift_s) if shift_s <= whole_s => {
                    if self.past_unit(shift_s, unit_s)? == 0 {
                        return Timestamp::from_second(shift_s).ok();
                    }
                    from_s = shift_s;
                }
                _ => return Timestamp::from_second(whole_s).ok(),
            }
        }
    }

    /// How many seconds the local clock is past a whole unit.
    fn past_unit(&self, time_s: i64, unit_s: i64) -> Option<i64> {
        let offset = self.zone.to_offset(Timestamp::from_second(time_s).ok()?);
        Some((time_s + i64::from(offset.seconds())).rem_euclid(unit_s))
    }

    /// The start of the day on which the window that holds `time` begins, or `later` (0 or 1) windows after it.
    fn day_of_window(&self, time: Timestamp, later: i64) -> Option<Timestamp> {
        use jiff::ToSpan as _;
        let today = ZonedDateTime::new(time, self.zone.clone()).date();
        let (first, step) = match self.every {
            Every::Month => (today.first_of_month(), later.months()),
            Every::Week => {
                let since_monday = i64::from(today.weekday().since(Weekday::Monday));
                (today.checked_sub(since_monday.days()).ok()?, (7 * later).days())
            }
            Every::Day | Every::Hour | Every::Minute => (today, later.days()),
        };
        let day = first.checked_add(step).ok()?;
        Some(day.to_zoned_datetime(self.zone.clone()).ok()?.start_of_day().ok()?.timestamp())
    }
}

/// Why something is not a quota.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// Nothing, or more than can be counted exactly.
    #[error("quota is {0}: it must be from 1 to 9007199254740991")]
    Quota(u64),
    /// No such time zone.
    #[error("there is no time zone {0:?}: use an IANA name such as Europe/Paris or UTC")]
    Zone(String),
    /// No such window.
    #[error("every is {0:?}: it must be minute, hour, day, week or month")]
    Every(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the window around an instant: `starts` are the current window's begin and the next two.
    fn check(every: Every, zone: &str, now: &str, starts: [&str; 3]) {
        let ms = |text: &str| u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap();
        let quota = Quota::new(1, every, zone).unwrap();
        let boundaries = quota.boundaries(ms(now)).unwrap();
        let shown = |ms: u64| Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap().to_string();
        assert_eq!([1, 2, 3].map(|at| shown(boundaries[at])), starts, "{quota:?} at {now}");
        assert!(boundaries.is_sorted_by(|a, b| a < b));
        // The window before ends where this one begins, seen from inside of it.
        assert_eq!(quota.boundaries(boundaries[1] - 1).unwrap()[1..3], boundaries[..2]);
    }

    #[test]
    fn clock_windows_begin_on_the_unit() {
        let starts = ["2026-03-01T10:59:00Z", "2026-03-01T11:00:00Z", "2026-03-01T11:01:00Z"];
        check(Every::Minute, "UTC", "2026-03-01T10:59:59.999Z", starts);
        let starts = ["2026-03-01T10:15:00Z", "2026-03-01T11:15:00Z", "2026-03-01T12:15:00Z"];
        check(Every::Hour, "Asia/Kathmandu", "2026-03-01T11:14:59.999Z", starts);
        check(Every::Hour, "Asia/Kathmandu", "2026-03-01T10:15:00Z", starts);
    }

    #[test]
    fn days_follow_daylight_saving() {
        // 23 hours on 29 March, 25 on 25 October 2026.
        let starts = ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"];
        check(Every::Day, "Europe/Paris", "2026-03-29T12:00:00Z", starts);
        let starts = ["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z"];
        check(Every::Day, "Europe/Paris", "2026-10-25T00:30:00Z", starts);
        // Midnight does not exist in Beirut on 29 March 2026: the day begins at 01:00.
        let starts = ["2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z", "2026-03-30T21:00:00Z"];
        check(Every::Day, "Asia/Beirut", "2026-03-29T00:00:00Z", starts);
    }

    #[test]
    fn an_hour_that_comes_twice_is_two_windows() {
        let starts = ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"];
        check(Every::Hour, "Europe/Paris", "2026-10-25T00:59:59Z", starts);
        let starts = ["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"];
        check(Every::Hour, "Europe/Paris", "2026-03-29T00:30:00Z", starts);
    }

    #[test]
    fn a_half_hour_shift_makes_one_long_window() {
        // Lord Howe: 02:00 +11 becomes 01:30 +10:30 on 5 April 2026 (15:00 UTC the day before).
        let starts = ["2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z"];
        check(Every::Hour, "Australia/Lord_Howe", "2026-04-04T14:30:00Z", starts);
        check(Every::Hour, "Australia/Lord_Howe", "2026-04-04T15:00:00Z", starts);
        check(Every::Hour, "Australia/Lord_Howe", "2026-04-04T15:29:59Z", starts);
    }

    #[test]
    fn weeks_begin_on_monday_and_months_on_the_first() {
        let starts = ["2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z", "2027-01-11T00:00:00Z"];
        check(Every::Week, "UTC", "2027-01-03T23:59:59.999Z", starts);
        check(Every::Week, "UTC", "2026-12-28T00:00:00Z", starts);
        let starts = ["2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", "2028-04-01T00:00:00Z"];
        check(Every::Month, "UTC", "2028-02-29T23:59:59.999Z", starts);
        let starts = ["2026-12-31T23:00:00Z", "2027-01-31T23:00:00Z", "2027-02-28T23:00:00Z"];
        check(Every::Month, "Europe/Paris", "2027-01-31T22:59:59.999Z", starts);
    }

    #[test]
    fn a_day_that_never_was_is_skipped() {
        // Samoa went from 29 to 31 December 2011.
        let starts = ["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"];
        check(Every::Day, "Pacific/Apia", "2011-12-30T09:00:00Z", starts);
    }

    #[test]
    fn what_is_not_a_quota_is_refused() {
        assert!(Quota::new(0, Every::Day, "UTC").unwrap_err().to_string().contains("from 1"));
        assert!(Quota::new(1 << 53, Every::Day, "UTC").is_err());
        assert!(Quota::new(1, Every::Day, "Mars/Olympus").unwrap_err().to_string().contains("Mars/Olympus"));
        assert!("year".parse::<Every>().unwrap_err().to_string().contains("month"));
    }
}
