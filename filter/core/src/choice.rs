//! A limit's policy and cost: fixed, or chosen by the request among what the configuration allows. Whatever a request
//! says, the service knows the policy and takes the cost.

use sluicegate_wire::{Cost, Name};

use crate::{
    source::{Found, Source},
    view::View,
};

/// Which policy a limit asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// Always this.
    Fixed(Name),
    /// What the map says, else the default.
    Chosen {
        /// Where the value comes from.
        from: Source,
        /// A policy for each value.
        map: ByValue<Name>,
        /// The policy for others.
        default: Name,
    },
}

/// What a request costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostChoice {
    /// Always this.
    Fixed(Cost),
    /// What the map says, else the value itself where it is a number within bounds, else the default.
    Chosen {
        /// Where the value comes from.
        from: Source,
        /// A cost for each value.
        map: ByValue<Cost>,
        /// The least and the most that a number may ask for; without them only the map counts.
        bounds: Option<(Cost, Cost)>,
        /// The cost for others.
        default: Cost,
    },
}

/// Something for each of some values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByValue<T>(pub Vec<(String, T)>);

impl<T> ByValue<T> {
    fn get(&self, value: &[u8]) -> Option<&T> {
        self.0.iter().find(|(known, _)| known.as_bytes() == value).map(|(_, thing)| thing)
    }
}

/// What was chosen, and whether the request said something that could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen<T> {
    pub(crate) value: T,
    pub(crate) fell_back: bool,
}

impl PolicyChoice {
    pub(crate) fn of(&self, view: &View<'_>) -> Chosen<&Name> {
        match self {
            Self::Fixed(name) => Chosen { value: name, fell_back: false },
            Self::Chosen { from, map, default } => {
                let found = from.find(view);
                match map.get(found.bytes()).filter(|_| found.is_one()) {
                    Some(name) => Chosen { value: name, fell_back: false },
                    None => Chosen { value: default, fell_back: found != Found::Absent },
                }
            }
        }
    }
}

impl CostChoice {
    /// The most that it can be.
    #[must_use]
    pub fn most(&self) -> Cost {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Chosen { map, bounds, default, .. } => {
                let most = map.0.iter().map(|(_, cost)| *cost).max().max(bounds.map(|(_, max)| max));
                most.map_or(*default, |most| most.max(*default))
            }
        }
    }

    /// A number over or under the bounds is brought within them: a request that says too much pays the most, not the
    /// default.
    pub(crate) fn of(&self, view: &View<'_>) -> Chosen<Cost> {
        let (from, map, bounds, default) = match self {
            Self::Fixed(cost) => return Chosen { value: *cost, fell_back: false },
            Self::Chosen { from, map, bounds, default } => (from, map, bounds, default),
        };
        let found = from.find(view);
        if !found.is_one() {
            return Chosen { value: *default, fell_back: found == Found::Several };
        }
        if let Some(cost) = map.get(found.bytes()) {
            return Chosen { value: *cost, fell_back: false };
        }
        match bounds.zip(number(found.bytes())) {
            Some(((min, max), number)) => {
                let value = number.clamp(min, max.max(min));
                Chosen { value, fell_back: value != number }
            }
            None => Chosen { value: *default, fell_back: true },
        }
    }
}

/// Digits and nothing else; more than a cost can be is the most that it can be.
fn number(text: &[u8]) -> Option<Cost> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.is_empty())?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().ok().and_then(|tokens| Cost::new(tokens).ok()).unwrap_or(Cost::MAX))
}

impl Found {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::One(value) => value,
            Self::Absent | Self::Several => &[],
        }
    }

    const fn is_one(&self) -> bool {
        matches!(self, Self::One(_))
    }
}
