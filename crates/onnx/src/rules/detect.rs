//! Boxes around objects. How many are kept is decided by their numbers, so that they have to be known.

use tonnage::Result;

use super::Rule;
use crate::call::{Call, int_tensor, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "NonMaxSuppression" => non_max_suppression,
        _ => return None,
    })
}

/// Corners of a box, the lower ones first.
fn corners(four: &[f64], is_center: bool) -> [f64; 4] {
    match is_center {
        true => {
            let (x, y, w, h) = (four[0], four[1], four[2] / 2.0, four[3] / 2.0);
            [y - h, x - w, y + h, x + w]
        }
        false => {
            [four[0].min(four[2]), four[1].min(four[3]), four[0].max(four[2]), four[1].max(four[3])]
        }
    }
}

/// What two boxes share, as a part of what both cover.
fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let area = |x: &[f64; 4]| (x[2] - x[0]) * (x[3] - x[1]);
    let height = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let width = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let both = height * width;
    let whole = area(a) + area(b) - both;
    if whole > 0.0 { both / whole } else { 0.0 }
}

fn non_max_suppression(c: &Call) -> Result<Vec<Value>> {
    let (boxes, scores) = (c.floats_of(0)?, c.floats_of(1)?);
    let [batches, count, 4] = c.sizes(&c.x(0)?)?[..] else {
        return Err(c.refuse("boxes of other than 4 numbers"));
    };
    let [_, classes, _] = c.sizes(&c.x(1)?)?[..] else {
        return Err(c.refuse("scores of other than 3 axes"));
    };
    if scores.len() != batches * classes * count {
        return Err(c.refuse("scores that are not as many as the boxes"));
    }
    let first = |at: usize| -> Result<Option<f64>> {
        c.maybe(at)?
            .map(|_| c.floats_of(at))
            .transpose()
            .map(|all| all.and_then(|all| all.first().copied()))
    };
    let most = first(2)?.map_or(0, |n| n.max(0.0) as usize);
    let (shared, least) = (first(3)?.unwrap_or(0.0), first(4)?);
    let is_center = c.flag("center_point_box")?;
    let mut kept: Vec<i64> = Vec::new();
    for batch in 0..batches {
        let place = |at: usize| corners(&boxes[(batch * count + at) * 4..][..4], is_center);
        for class in 0..classes {
            let score = |at: usize| scores[(batch * classes + class) * count + at];
            let mut order: Vec<usize> =
                (0..count).filter(|at| least.is_none_or(|least| score(*at) > least)).collect();
            order.sort_by(|a, b| score(*b).total_cmp(&score(*a)).then(a.cmp(b)));
            let mut chosen: Vec<[f64; 4]> = Vec::new();
            for at in order {
                if chosen.len() >= most {
                    break;
                }
                let own = place(at);
                if chosen.iter().all(|other| overlap(&own, other) <= shared) {
                    chosen.push(own);
                    kept.extend([batch as i64, class as i64, at as i64]);
                }
            }
        }
    }
    one(int_tensor(&kept, &[kept.len() / 3, 3])?)
}
