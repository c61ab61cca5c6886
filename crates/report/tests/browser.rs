//! The page in a real browser: it opens without errors, shows the plan's numbers, and hover, zoom, filters and keys work.
//!
//! Where there is no Chromium the tests say SKIPPED, and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests stand outside of test functions"
)]

mod common;

use std::process::{Command, Stdio};

use serde_json::Value;
use tonnage_core::{Bytes, Kind};
use tonnage_report::Report;
use tonnage_runtime::Owner;
use tonnage_runtime::timeline::{Moment, Span, Timeline};

/// What a user would do, and what he would see; left in the page for the test to read.
const USER: &str = r##"
const map = document.getElementById('map'), tip = document.getElementById('tip'), note = document.getElementById('note');
const box = map.getBoundingClientRect();
const at = (kind, x, y, more) => new kind({ mousemove: 'mousemove', wheel: 'wheel' }[more.what], { clientX: box.left + x, clientY: box.top + y, bubbles: true, ...more });
const hover = () => {
  for (let y = 4; y < box.height - 20; y += 3) {
    map.dispatchEvent(at(MouseEvent, box.width / 2, y, { what: 'mousemove' }));
    if (!tip.hidden) return tip.innerText;
  }
  return '';
};
const wheel = deltaY => map.dispatchEvent(at(WheelEvent, box.width / 2, box.height / 2, { what: 'wheel', deltaY, cancelable: true }));
const key = name => map.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
const found = { title: document.title, heading: document.querySelector('h1').innerText, failed: document.getElementById('failed').hidden ? null : document.getElementById('failed').innerText };
found.facts = document.getElementById('facts').innerText;
found.note = note.innerText;
const whole = map.toDataURL();
found.hover = hover();
for (let i = 0; i < 12; i += 1) wheel(-100);
found.zoomed = map.toDataURL() !== whole;
found.zoomed_note = note.innerText;
key('0');
found.back = map.toDataURL() === whole;
key('n');
found.picked = tip.hidden ? '' : tip.innerText;
key('Escape');
const first = document.querySelector('#kinds input');
first.click();
found.without = [first.value, note.innerText];
first.click();
found.again = note.innerText;
const search = document.getElementById('search');
search.value = 'no such name';
search.dispatchEvent(new Event('input'));
found.nothing = note.innerText;
search.value = '';
search.dispatchEvent(new Event('input'));
found.steps = document.querySelectorAll('#steps tbody tr').length;
found.holders = document.getElementById('holders').innerText;
found.milliseconds = performance.now();
found.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const out = document.createElement('script');
out.type = 'application/json';
out.id = 'found';
out.textContent = JSON.stringify(found).replaceAll('<', '\\u003c');
document.body.append(out);
"##;

fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let answers = |name: &&str| {
        let mut asked = Command::new(name);
        asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    };
    names.into_iter().find(answers)
}

/// What a user finds on a page, in a window of that size; `None` where there is no browser.
fn seen(page: &str, size: &str) -> Option<Value> {
    let Some(browser) = browser() else {
        println!("SKIPPED: no Chromium on this machine");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let user = format!("<script nonce=\"tonnage\">{USER}</script></body>");
    std::fs::write(&file, page.replace("</body>", &user)).unwrap();
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let made = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args([&profile, &format!("--window-size={size}"), "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&made.stdout).into_owned();
    let (_, after) = dom.rsplit_once("id=\"found\">").expect(&dom);
    let (json, _) = after.split_once("</script>").unwrap();
    Some(serde_json::from_str(json).unwrap())
}

#[test]
fn the_page_shows_the_plan_and_answers_to_mouse_and_keys() {
    let plan = common::planned();
    let title = format!("of {}", common::ODD_NAME);
    let page = Report::new(&title).plan(&plan).measured(plan.peak()).budget(Bytes::mib(1)).html();
    let Some(found) = seen(&page, "1200,900") else { return };
    let text = |key: &str| found[key].as_str().unwrap().to_string();
    assert_eq!(found["failed"], Value::Null);
    // Markup is shown as text, and no script of a name has run.
    assert_eq!((text("title"), text("heading")), (title.clone(), title));
    assert!(text("holders").contains(common::ODD_NAME), "{}", text("holders"));
    let facts = text("facts");
    assert!(facts.contains(&plan.peak().to_string()) && facts.contains("none"), "{facts}");
    let bars = tonnage_report::Picture::of_plan("plan", &plan).bars.len();
    assert!(text("note").starts_with(&format!("{bars} of {bars} buffers")), "{}", text("note"));
    assert!(text("hover").contains("bytes) at") && text("hover").contains("steps "), "{found}");
    assert_eq!((&found["zoomed"], &found["back"]), (&Value::Bool(true), &Value::Bool(true)));
    assert!(text("picked").contains("bytes) at"), "{found}");
    assert_ne!(found["without"][1], found["note"]);
    assert_eq!(found["again"], found["note"]);
    assert!(text("nothing").starts_with("0 of"), "{found}");
    assert_eq!(found["steps"], plan.steps.len());
    assert_eq!(found["wide"], 0);
}

#[test]
fn the_page_fits_a_phone() {
    let page = Report::new("narrow").plan(&common::planned()).html();
    let Some(found) = seen(&page, "500,900") else { return };
    assert_eq!((&found["failed"], &found["wide"]), (&Value::Null, &Value::from(0)));
}

/// A recording of that many buffers, some of which live at once.
fn recorded(count: u64) -> Timeline {
    let owners = vec![Owner::new(Kind::Activation, "matmul"), Owner::new(Kind::Scratch, "sort")];
    let span = |i: u64| Span {
        from: 1000 * i,
        to: Some(1000 * i + 1000 * (1 + i % 50)),
        bytes: Bytes::new(64 * (1 + i % 17)),
        owner: (i % 2) as u32,
    };
    let moment = |i: u64| Moment { at: 1000 * i, in_use: Bytes::new(64 * (i % 400)) };
    Timeline {
        owners,
        spans: (0..count).map(span).collect(),
        curve: (0..count).map(moment).collect(),
        length: 1000 * (count + 51),
        ..Timeline::default()
    }
}

#[test]
fn fifty_thousand_buffers_are_drawn_and_found() {
    let page = Report::new("many").timeline(&recorded(50_000)).html();
    let Some(found) = seen(&page, "1200,900") else { return };
    assert_eq!(found["failed"], Value::Null);
    let note = found["note"].as_str().unwrap();
    assert!(note.starts_with("50000 of 50000 buffers"), "{note}");
    assert!(found["hover"].as_str().unwrap().contains("for "), "{found}");
    println!("opened, drawn and used in {} ms, {} bytes", found["milliseconds"], page.len());
}
