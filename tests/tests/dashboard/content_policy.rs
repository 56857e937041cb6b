//! What the page's Content-Security-Policy forbids, should markup ever get into it.

use crate::page::Page;

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn markup_that_got_in_would_do_nothing_and_be_told() {
    let page = Page::open().await;
    page.assert_quiet().await;
    page.browser
        .run("document.querySelector('#found').innerHTML = '<img src=x onerror=\"document.title = `run`\">'")
        .await
        .unwrap();
    page.browser
        .run(
            "document.body.append(Object.assign(document.createElement('script'), { text: 'document.title = `run`' }))",
        )
        .await
        .unwrap();
    page.browser
        .run("fetch('http://127.0.0.1:1/').catch(() => { document.body.dataset.refused = true; })")
        .await
        .unwrap();
    page.until("document.body.dataset.refused").await;
    let console = page.browser.console().await.unwrap();
    for directive in ["script-src", "connect-src"] {
        let told = |message: &String| message.contains("Content Security Policy") && message.contains(directive);
        assert!(console.iter().any(told), "{directive}: {console:?}");
    }
    page.until("document.title === 'Sluicegate'").await;
}
