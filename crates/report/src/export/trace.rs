//! Trace events, as Perfetto (ui.perfetto.dev) and chrome://tracing read them: memory as a counter, calls and steps as slices,
//! large buffers as spans of their own.
//!
//! Times are microseconds there: a step of a plan is one, and so are a thousand nanoseconds.

use serde_json::{Value, json};

use crate::picture::{Along, Picture};

/// Buffers that are told one by one, the largest; the counter tells all.
const BUFFERS: usize = 20_000;

impl Picture {
    /// The picture as trace events.
    pub fn trace(&self) -> String {
        let unit = match self.along {
            Along::Steps => 1.0,
            Along::Nanoseconds => 1e3,
        };
        let time = |at: u64| at as f64 / unit;
        let mut events: Vec<Value> = vec![
            json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": self.title}}),
            json!({"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "steps"}}),
        ];
        for point in &self.curve {
            let args = json!({ "bytes": point.bytes });
            events.push(
                json!({"ph": "C", "pid": 1, "name": "in use", "ts": time(point.at), "args": args}),
            );
        }
        for tick in &self.ticks {
            let line = tick.line.map(|line| line.to_string());
            events.push(json!({
                "ph": "X", "pid": 1, "tid": 1, "cat": "step", "name": tick.name,
                "ts": time(tick.from), "dur": time(tick.to - tick.from), "args": {"line": line},
            }));
        }
        let mut largest: Vec<usize> = (0..self.bars.len()).collect();
        if largest.len() > BUFFERS {
            largest.sort_by_key(|i| std::cmp::Reverse(self.bars[*i].bytes));
            largest.truncate(BUFFERS);
        }
        for id in largest {
            let bar = &self.bars[id];
            let Some(owner) = self.owners.get(bar.owner as usize) else { continue };
            let name = format!("{} {}", owner.kind, owner.what);
            let args = json!({
                "bytes": bar.bytes, "address": bar.address,
                "line": owner.line.to_string(), "layer": owner.layer,
            });
            for (ph, at, args) in [("b", bar.from, args), ("e", bar.to, json!({}))] {
                events.push(json!({
                    "ph": ph, "pid": 1, "cat": "buffer", "id": id, "name": name,
                    "ts": time(at), "args": args,
                }));
            }
        }
        let other = json!({ "peak": self.peak.bytes, "lost": self.lost });
        json!({ "traceEvents": events, "displayTimeUnit": "ms", "otherData": other }).to_string()
    }
}
