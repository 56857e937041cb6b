//! How the page fits, and what of it can be told without eyes or a mouse.

use serde_json::Value;

use crate::page::Page;

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn a_telephone_needs_no_scrolling_sideways() {
    let page = Page::open().await;
    page.take("api", &"long-name".repeat(12), 25).await;
    page.until("document.querySelectorAll('#top td').length === 3").await;
    page.browser.click("#top button").await.unwrap();
    page.until("document.querySelectorAll('#found td').length === 3").await;
    for width in [320, 360, 768, 1280] {
        page.browser.resize(width, 740).await.unwrap();
        page.until(&format!("innerWidth === {width}")).await;
        let beyond = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(page.browser.run(beyond).await.unwrap(), 0, "at {width} px");
    }
    page.assert_quiet().await;
}

/// The contrast of each text to what is behind it, by WCAG 2: 4.5 is enough for all sizes.
const CONTRASTS: &str = "
const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
const luminance = (colour) => {
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const linear = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((byte) => byte / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour !== 'rgba(0, 0, 0, 0)') return colour;
  }
  return 'white';
};
const texts = [...document.querySelectorAll('body *')].filter((element) =>
  element.getClientRects().length && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
return texts.map((element) => {
  const [one, two] = [luminance(getComputedStyle(element).color), luminance(behind(element))];
  return [element.textContent, (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05)];
});";

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn every_text_stands_out_and_every_control_has_a_name() {
    let page = Page::open().await;
    page.take("api", "alice", 25).await;
    page.until("document.querySelectorAll('#top td').length === 3").await;
    for dark in [false, true] {
        page.browser.prefer_dark(dark).await.unwrap();
        page.until(&format!("matchMedia('(prefers-color-scheme: dark)').matches === {dark}")).await;
        let contrasts = page.browser.run(CONTRASTS).await.unwrap();
        let contrasts = contrasts.as_array().unwrap();
        assert!(contrasts.len() > 30, "{contrasts:?}");
        let faint: Vec<&Value> = contrasts.iter().filter(|found| found[1].as_f64().unwrap() < 4.5).collect();
        assert!(faint.is_empty(), "dark: {dark}: {faint:?}");
    }
    let unnamed = "[...document.querySelectorAll('select, input, button, meter')]\
        .filter((control) => !control.labels?.length && !control.ariaLabel && !control.innerText)";
    page.until(&format!("{unnamed}.every((control) => control.closest('dialog'))")).await;
    page.until("document.querySelector('#chart svg').getAttribute('aria-label').endsWith('at most 25')").await;
    page.assert_quiet().await;
}
