//! A listener with a token.

use crate::page::Page;

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn the_page_asks_for_the_token_and_keeps_it_for_the_tab() {
    let page = Page::open_with("admin: { token: sesame-open-now-please }\n").await;
    page.until("document.querySelector('#ask-token').open").await;
    page.until_text("#live", "not live").await;
    page.until_text("#policies tbody", "").await;
    page.browser.write("#token", "wrong").await.unwrap();
    page.browser.click("#ask-token button").await.unwrap();
    page.until_text("#ask-token-why", "The token is not one that is allowed here.").await;
    page.until("document.querySelector('#ask-token').open").await;
    page.browser.write("#token", "sesame-open-now-please").await.unwrap();
    page.browser.click("#ask-token button").await.unwrap();
    page.until_text("#live", "live").await;
    page.take("api", "alice", 3).await;
    page.until_text("#policies td", "3").await;
    page.until("!location.href.includes('sesame') && !document.cookie && !localStorage.length").await;

    // Those that were told a token is wanted; nothing else.
    let console = page.browser.console().await.unwrap();
    assert!(console.iter().all(|message| message.contains("401 (Unauthorized)")), "{console:?}");
    page.browser.run("location.reload()").await.unwrap();
    page.until_text("#policies td", "3").await;
    page.until_text("#live", "live").await;
    page.assert_quiet().await;
}
