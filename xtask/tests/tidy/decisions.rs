//! Decisions: every page is in the index, says its three things, and is named by the files that it is about.

use crate::none;
use crate::tree::{File, files};

const FOLDER: &str = "docs/decisions/";

/// What every page has, in this order.
const PARTS: [&str; 4] = ["**Context.** ", "**Decision.** ", "**Rejected.** ", "**Code.** "];

fn loose_pages(files: &[File]) -> Vec<String> {
    let text_of = |path: &str| files.iter().find(|file| file.path == path).map(|file| &*file.text);
    let index = text_of("docs/decisions/README.md").unwrap_or_default();
    let mut found = Vec::new();
    for page in files.iter().filter(|file| file.path.starts_with(FOLDER)) {
        let name = &page.path[FOLDER.len()..];
        if name == "README.md" {
            continue;
        }
        if !index.contains(&format!("]({name})")) {
            found.push(page.at(1, "not in the index"));
        }
        let at: Vec<_> = PARTS.iter().map(|part| page.text.find(part)).collect();
        if at.iter().any(Option::is_none) || !at.is_sorted() {
            found.push(page.at(1, &format!("does not have {PARTS:?} in this order")));
        }
        let code = page.text.split_once("**Code.** ").map_or("", |(_, code)| code);
        let links: Vec<&str> =
            code.split("](../../").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        if links.is_empty() {
            found.push(page.at(1, "names no file"));
        }
        for link in links {
            match text_of(link) {
                None => found.push(page.at(1, &format!("there is no file {link}"))),
                Some(text) if !text.contains(&page.path) => {
                    found.push(page.at(1, &format!("{link} does not name the page")));
                }
                Some(_) => {}
            }
        }
    }
    found
}

#[test]
fn every_decision_is_listed_and_named_by_its_code() {
    none(loose_pages(&files().unwrap()));
}

#[test]
fn a_decision_that_nothing_leads_to_is_found() {
    let page = |code: &str| {
        let text = format!("# A\n{}{}{}{}{code}", PARTS[0], PARTS[1], PARTS[2], PARTS[3]);
        File::sample("docs/decisions/a.md", &text)
    };
    let index = || File::sample("docs/decisions/README.md", "* [A](a.md)");
    let check = |files: &[File]| {
        let found = loose_pages(files);
        let says = found.iter().map(|what| what.rsplit(": ").next().unwrap().to_string());
        says.collect::<Vec<_>>()
    };
    let source = |text| File::sample("a.rs", text);
    let linked = "[`a.rs`](../../a.rs).";
    assert!(check(&[page(linked), index(), source("//! `docs/decisions/a.md`")]).is_empty());
    assert_eq!(check(&[page(linked), index(), source("")]), ["a.rs does not name the page"]);
    assert_eq!(check(&[page(linked), index()]), ["there is no file a.rs"]);
    assert_eq!(check(&[page(""), index()]), ["names no file"]);
    assert_eq!(check(&[page(linked), source("docs/decisions/a.md")]), ["not in the index"]);
    let short = File::sample("docs/decisions/a.md", "**Code.** [`a.rs`](../../a.rs)");
    assert_eq!(check(&[short, index(), source("docs/decisions/a.md")]).len(), 1);
}
