//! The report: one page of HTML that needs nothing else, neither a network nor a server.
//!
//! The page is three files beside this one, put together with the data as JSON. Names never become markup: `<` is
//! written as an escape in the JSON, so that no name can end the element that holds it, and the script puts every
//! text into the page as text. The page's own policy lets no other script run and loads nothing.
//!
//! Decision: `docs/decisions/report-page.md`.

use serde_json::{Value, json};
use tonnage_core::{Bytes, Kind};
use tonnage_plan::{Explanation, Plan, Price, StepLine};
use tonnage_runtime::timeline::Timeline;

use crate::picture::Picture;

/// Buffers that a page shows of one picture, the largest.
const BARS: usize = 200_000;
/// Points of a curve: more than a screen has columns.
const POINTS: usize = 100_000;

/// A page about the memory of a program.
///
/// ```
/// # use std::sync::Arc;
/// # use tonnage_core::graph::Builder;
/// # use tonnage_core::{Attrs, DType, Emit, Kind, TensorType};
/// # use tonnage_plan::{DescribedTarget, InputSpec, PlanOptions, lower, plan};
/// # use tonnage_report::Report;
/// # let mut builder = Builder::new();
/// # let ty = TensorType::new(DType::F32, [1000, 1000]);
/// # let x = builder.input(ty.clone(), Kind::Input, None);
/// # let y = builder.apply(&tonnage_ops::math::tanh::TANH, vec![x], Attrs::None)?;
/// # let graph = Arc::new(lower(&builder.finish(&[y])?, &DescribedTarget::default())?);
/// # let inputs = [InputSpec::contiguous(&ty, "example", false)?];
/// # let plan = plan(&graph, &inputs, PlanOptions::new(Arc::new(DescribedTarget::default())))?;
/// let page = Report::new("tanh of <b>a matrix</b>").plan(&plan).html();
/// assert!(page.starts_with("<!doctype html>") && !page.contains("<b>"));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Report {
    title: String,
    facts: Vec<(String, String)>,
    pictures: Vec<Picture>,
    explanation: Option<Explanation>,
    predicted: Option<Bytes>,
    measured: Option<Bytes>,
    budget: Option<Bytes>,
    prices: Vec<Price>,
    failed: Option<String>,
}

impl Report {
    /// A page of that title with nothing on it yet.
    pub fn new(title: &str) -> Report {
        Report {
            title: title.to_string(),
            facts: Vec::new(),
            pictures: Vec::new(),
            explanation: None,
            predicted: None,
            measured: None,
            budget: None,
            prices: Vec::new(),
            failed: None,
        }
    }

    /// With a plan: its picture, its table and what would save the most.
    #[must_use]
    pub fn plan(mut self, plan: &Plan) -> Report {
        self.pictures.push(Picture::of_plan("plan", plan));
        self.predicted = Some(plan.peak());
        self.explanation = Some(plan.explain());
        self
    }

    /// With a recording.
    #[must_use]
    pub fn timeline(mut self, timeline: &Timeline) -> Report {
        self.pictures.push(Picture::of_timeline("run", timeline));
        self
    }

    /// With what calls were seen to take at most, beside what was predicted.
    #[must_use]
    pub fn measured(self, measured: Bytes) -> Report {
        Report { measured: Some(measured), ..self }
    }

    /// With the budget.
    #[must_use]
    pub fn budget(self, budget: Bytes) -> Report {
        Report { budget: Some(budget), ..self }
    }

    /// With what less memory costs.
    #[must_use]
    pub fn prices(self, prices: Vec<Price>) -> Report {
        Report { prices, ..self }
    }

    /// With one more line of figures at the top.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl ToString) -> Report {
        self.facts.push((name.to_string(), value.to_string()));
        self
    }

    /// Of a run that did not come to its end, and why.
    #[must_use]
    pub fn failed(self, why: impl ToString) -> Report {
        Report { failed: Some(why.to_string()), ..self }
    }

    /// The page.
    pub fn html(&self) -> String {
        let parts = [
            ("{title}", escaped(&self.title)),
            ("{style}", include_str!("page.css").to_string()),
            ("{data}", self.data().to_string().replace('<', "\\u003c")),
            ("{script}", include_str!("page.js").to_string()),
        ];
        let mut page = String::new();
        let mut rest = include_str!("page.html");
        // Each part is put where its own name stands in the page alone, never into another part.
        for (name, part) in &parts {
            if let Some((before, after)) = rest.split_once(name) {
                page.push_str(before);
                page.push_str(part);
                rest = after;
            }
        }
        page.push_str(rest);
        page
    }

    fn data(&self) -> Value {
        json!({
            "title": self.title,
            "failed": self.failed,
            "facts": self.facts,
            "predicted": self.predicted,
            "measured": self.measured,
            "budget": self.budget,
            "kinds": Kind::ALL.map(Kind::name),
            "pictures": self.pictures.iter().map(picture).collect::<Vec<_>>(),
            "prices": self.prices.iter().map(price).collect::<Vec<_>>(),
            "explained": self.explanation.as_ref().map(explained),
        })
    }
}

/// A text where markup is expected.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A picture in columns: numbers in lists of their own take a third of what a list of records takes.
fn picture(picture: &Picture) -> Value {
    let mut bars: Vec<_> = picture.bars.iter().collect();
    if bars.len() > BARS {
        bars.sort_by_key(|bar| std::cmp::Reverse(bar.bytes));
        bars.truncate(BARS);
        bars.sort_by_key(|bar| bar.from);
    }
    let owner = |owner: &crate::BufferOwner| {
        let kind = Kind::ALL.iter().position(|kind| *kind == owner.kind);
        json!([kind, owner.what, owner.line, owner.layer])
    };
    let curve = thinned(picture);
    json!({
        "title": picture.title,
        "along": picture.along,
        "length": picture.length,
        "peak": picture.peak,
        "owners": picture.owners.iter().map(owner).collect::<Vec<_>>(),
        "from": differences(bars.iter().map(|bar| bar.from)),
        "long": bars.iter().map(|bar| bar.to - bar.from).collect::<Vec<_>>(),
        "address": bars.iter().map(|bar| bar.address).collect::<Vec<_>>(),
        "bytes": bars.iter().map(|bar| bar.bytes).collect::<Vec<_>>(),
        "owner": bars.iter().map(|bar| bar.owner).collect::<Vec<_>>(),
        "at": differences(curve.iter().map(|point| point.at)),
        "in_use": curve.iter().map(|point| point.bytes).collect::<Vec<_>>(),
        "lost": picture.lost + (picture.bars.len() - bars.len()) as u64,
    })
}

/// The points of a curve, or the highest and the lowest of each span where there are too many.
fn thinned(picture: &Picture) -> Vec<crate::Point> {
    let each = picture.curve.len().div_ceil(POINTS / 2);
    if picture.curve.len() <= POINTS {
        return picture.curve.clone();
    }
    let ends = |points: &[crate::Point]| {
        let mut extremes: Vec<crate::Point> = Vec::new();
        extremes.extend(points.iter().max_by_key(|point| point.bytes));
        extremes.extend(points.iter().min_by_key(|point| point.bytes));
        extremes.sort_by_key(|point| point.at);
        extremes
    };
    picture.curve.chunks(each).flat_map(ends).collect()
}

fn differences(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0;
    let step = |n: u64| {
        let more = n as i64 - before;
        before = n as i64;
        more
    };
    numbers.map(step).collect()
}

fn price(price: &Price) -> Value {
    json!([price.peak, price.fitted.seconds, price.fitted.to_string()])
}

fn explained(explained: &Explanation) -> Value {
    let holder =
        |h: &tonnage_plan::SourceShare| json!([h.bytes, h.kind, h.what, h.count, h.source]);
    let step = |line: &StepLine| {
        json!([
            line.op,
            line.fused,
            line.memory_name(),
            line.bytes,
            line.live,
            line.source,
            line.layer,
            line.refused
                .iter()
                .map(|(i, why)| format!("not in place of input {i}: {why}"))
                .collect::<Vec<_>>(),
        ])
    };
    json!({
        "peak": explained.peak,
        "inputs": explained.inputs,
        "arena": explained.arena,
        "bound": explained.bound,
        "small_results": explained.small_results,
        "gaps": explained.gaps,
        "is_bound": explained.is_bound,
        "spilled": explained.spilled,
        "fitted": explained.fitted.map(|fitted| fitted.to_string()),
        "segments": explained.segments.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "peak_step": explained.peak_step,
        "holders": explained.live_at_peak.iter().map(holder).collect::<Vec<_>>(),
        "by_kind": explained.by_kind.iter().map(|s| json!([s.name, s.count, s.bytes])).collect::<Vec<_>>(),
        "by_layer": explained.by_layer.iter().map(|s| json!([s.name, s.count, s.bytes])).collect::<Vec<_>>(),
        "suggestions": explained.suggestions.iter().map(|s| json!([s.saves, s.source, s.advice()])).collect::<Vec<_>>(),
        "steps": explained.steps.iter().map(step).collect::<Vec<_>>(),
    })
}
