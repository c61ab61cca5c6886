//! Every export is opened by a parser that is not ours, and holds the plan's figures.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use std::io::Read;

use quick_protobuf::{BytesReader, MessageRead};
use serde_json::Value;
use tonnage_report::Picture;

#[test]
fn json_holds_all_of_it() {
    let plan = common::planned();
    let picture = Picture::of_plan("a <plan>, \"quoted\"", &plan);
    let read: Value = serde_json::from_str(&picture.json()).unwrap();
    assert_eq!(read["title"], "a <plan>, \"quoted\"");
    assert_eq!(read["peak"]["bytes"], plan.peak().get());
    assert_eq!(read["bars"].as_array().unwrap().len(), picture.bars.len());
    let curve = read["curve"].as_array().unwrap();
    for (point, step) in curve.iter().zip(&plan.steps) {
        let live = plan.inputs + plan.own_outputs() + step.live;
        assert_eq!(point["bytes"], live.get());
    }
}

#[test]
fn csv_is_a_row_for_each_buffer() {
    let plan = common::planned();
    let text = Picture::of_plan("plan", &plan).csv();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    assert_eq!(rows.headers().unwrap().iter().nth(3), Some("bytes"));
    let (mut sum, mut names) = (0u64, Vec::new());
    let at = plan.peak_step() as u64;
    for row in rows.records() {
        let row = row.unwrap();
        let number = |i: usize| row[i].parse::<u64>().unwrap();
        if number(0) <= at && at < number(1) {
            sum += number(3);
        }
        names.push(row[5].to_string());
    }
    assert_eq!(sum, (plan.inputs + plan.own_outputs() + plan.bound).get());
    assert!(names.contains(&common::ODD_NAME.to_string()), "{names:?}");
}

#[test]
fn trace_events_count_what_is_in_use_and_name_the_steps() {
    let plan = common::planned();
    let text = Picture::of_plan("plan", &plan).trace();
    let read: Value = serde_json::from_str(&text).unwrap();
    let events = read["traceEvents"].as_array().unwrap();
    let of = |ph: &str| events.iter().filter(|e| e["ph"] == ph).collect::<Vec<_>>();
    let most = of("C").iter().map(|e| e["args"]["bytes"].as_u64().unwrap()).max().unwrap();
    assert_eq!(most, (plan.inputs + plan.own_outputs() + plan.bound).get());
    assert_eq!(of("X").len(), plan.steps.len());
    assert!(of("X").iter().any(|e| e["name"] == "matmul"));
    assert_eq!(of("b").len(), of("e").len());
    assert!(events.iter().all(|e| e["pid"].is_u64() && e["name"].is_string()));
}

/// What is checked of a profile, read by a reader of protocol buffers.
#[derive(Default)]
struct Profile {
    kinds: Vec<(u64, u64)>,
    samples: Vec<(Vec<u64>, Vec<i64>)>,
    locations: usize,
    functions: Vec<(u64, u64)>,
    texts: Vec<String>,
}

struct Pair(u64, u64);

impl<'a> MessageRead<'a> for Pair {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> quick_protobuf::Result<Self> {
        let mut pair = Pair(0, 0);
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                8 => pair.0 = r.read_uint64(bytes)?,
                16 => pair.1 = r.read_uint64(bytes)?,
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(pair)
    }
}

struct Sample(Vec<u64>, Vec<i64>);

impl<'a> MessageRead<'a> for Sample {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> quick_protobuf::Result<Self> {
        let mut sample = Sample(Vec::new(), Vec::new());
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => sample.0 = r.read_packed(bytes, |r, b| r.read_uint64(b))?,
                18 => sample.1 = r.read_packed(bytes, |r, b| r.read_int64(b))?,
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(sample)
    }
}

impl<'a> MessageRead<'a> for Profile {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> quick_protobuf::Result<Self> {
        let mut profile = Profile::default();
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => {
                    let Pair(a, b) = r.read_message(bytes)?;
                    profile.kinds.push((a, b));
                }
                18 => {
                    let Sample(a, b) = r.read_message(bytes)?;
                    profile.samples.push((a, b));
                }
                34 => {
                    let Pair(..) = r.read_message(bytes)?;
                    profile.locations += 1;
                }
                42 => {
                    let Pair(a, b) = r.read_message(bytes)?;
                    profile.functions.push((a, b));
                }
                50 => profile.texts.push(r.read_string(bytes)?.to_string()),
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(profile)
    }
}

#[test]
fn a_heap_profile_has_what_lives_at_the_peak() {
    let plan = common::planned();
    let zipped = Picture::of_plan("plan", &plan).pprof();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&zipped[..]).read_to_end(&mut bytes).unwrap();
    let profile = Profile::from_reader(&mut BytesReader::from_bytes(&bytes), &bytes).unwrap();
    let text = |at: u64| profile.texts[at as usize].as_str();
    let kinds: Vec<_> = profile.kinds.iter().map(|(a, b)| (text(*a), text(*b))).collect();
    assert_eq!(kinds[3], ("inuse_space", "bytes"));
    assert_eq!(text(0), "");
    let in_use: i64 = profile.samples.iter().map(|(_, values)| values[3]).sum();
    assert_eq!(in_use as u64, (plan.inputs + plan.own_outputs() + plan.bound).get());
    assert_eq!(profile.locations, profile.functions.len());
    let places: Vec<u64> = profile.functions.iter().map(|(id, _)| *id).collect();
    assert!(profile.samples.iter().all(|(stack, values)| {
        values.len() == 4 && !stack.is_empty() && stack.iter().all(|at| places.contains(at))
    }));
    let names: Vec<&str> = profile.functions.iter().map(|(_, name)| text(*name)).collect();
    assert!(names.contains(&"matmul") && names.contains(&common::ODD_NAME), "{names:?}");
}
