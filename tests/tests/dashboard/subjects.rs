//! What the page counts, and what is done from it.

use crate::page::{Page, SCRIPT};

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn the_page_shows_exactly_what_was_sent() {
    let page = Page::open().await;
    assert_eq!(page.take("api", SCRIPT, 25).await, 20);
    assert_eq!(page.take("login", "alice", 17).await, 10);
    let p99 = "[...document.querySelectorAll('#policies td:last-child')]";
    page.until(&format!("{p99}.length === 2 && {p99}.every((cell) => /^[0-9.]+ ms$/.test(cell.innerText))")).await;
    // Their times are what they are.
    page.browser.run(&format!("{p99}.forEach((cell) => cell.remove())")).await.unwrap();
    page.until_rows("#policies", &[&["api", "20", "5", "0"], &["login", "10", "7", "0"]]).await;
    let totals = "[...document.querySelectorAll('#legend b')].map((total) => total.innerText).join()";
    page.until(&format!("{totals} === '30,12,0,0,0'")).await;

    page.until_rows("#top", &[&[SCRIPT, "20", "Peek Reset"]]).await;
    page.browser.run("document.querySelector('#top-by').value = 'denials'").await.unwrap();
    page.browser.run("document.querySelector('#top-by').dispatchEvent(new Event('change'))").await.unwrap();
    page.until_rows("#top", &[&[SCRIPT, "5", "Peek Reset"]]).await;
    page.browser.run("document.querySelector('#top-policy').value = 'login'").await.unwrap();
    page.browser.run("document.querySelector('#top-policy').dispatchEvent(new Event('change'))").await.unwrap();
    page.until_rows("#top", &[&["alice", "7", "Peek Reset"]]).await;
    page.until("document.images.length === 0").await;
    page.assert_quiet().await;
}

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn a_subject_is_peeked_at_and_reset_from_the_page() {
    let page = Page::open().await;
    page.take("api", SCRIPT, 20).await;
    page.until_rows("#top", &[&[SCRIPT, "20", "Peek Reset"]]).await;
    page.browser.click("#top button").await.unwrap();
    page.until_text("#found .whom", &format!("api: {SCRIPT}")).await;
    page.until_text("#found td", "0 of 20").await;

    // Whoever thinks better of it changes nothing.
    page.browser.click("#found .danger").await.unwrap();
    page.until_text("#ask-reset-whom", &format!("api: {SCRIPT}")).await;
    page.until("document.activeElement.value === 'cancel'").await;
    page.browser.click("#ask-reset [value=cancel]").await.unwrap();
    page.until("!document.querySelector('#ask-reset').open").await;
    assert_eq!(page.take("api", SCRIPT, 1).await, 0);

    page.browser.click("#found .danger").await.unwrap();
    page.browser.click("#ask-reset [value=reset]").await.unwrap();
    page.until_text("#note", "Reset: 1 key removed.").await;
    page.until_text("#found td", "20 of 20").await;
    assert_eq!(page.take("api", SCRIPT, 1).await, 1);

    page.browser.write("#find-subject", "[\"tenant\", \"user\"]").await.unwrap();
    page.browser.click("#find button").await.unwrap();
    page.until_text("#found .whom", "api: tenant+user").await;
    page.assert_quiet().await;

    page.browser.run("document.querySelector('#find-subject').value = '[]'").await.unwrap();
    page.browser.click("#find button").await.unwrap();
    page.until("document.querySelector('#found .bad').innerText.startsWith('key: ')").await;
}
