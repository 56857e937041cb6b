//! The service fails to read its configuration, stops, and comes back.

use std::fs;

use sluicegate_tests::Signal;

use crate::page::Page;

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn a_configuration_that_is_refused_shows_with_its_fault() {
    let page = Page::open().await;
    page.until("document.querySelector('#reload').innerText.startsWith('good, read at ')").await;
    let good = fs::read_to_string(page.service.config()).unwrap();
    fs::write(page.service.config(), good.replace("\"capacity\":20", "\"capacity\":0")).unwrap();
    page.until("document.querySelector('#reload').innerText.startsWith('refused at ')").await;
    page.until("document.querySelector('#reload-error').innerText.includes('policies.api.limits[0].capacity')").await;

    fs::write(page.service.config(), good.replace("\"timeout\":\"5s\"", "\"timeout\":\"4s\"")).unwrap();
    page.until_text("#needs-restart", "waits for a restart: store.timeout").await;
    page.until("document.querySelector('#reload-error').hidden").await;

    let more = good.replace(
        "\"policies\":{",
        "\"policies\":{\"new\":{\"limits\":[{\"name\":\"m\",\"quota\":5,\"every\":\"month\"}]},",
    );
    fs::write(page.service.config(), more).unwrap();
    page.until("[...document.querySelector('#top-policy').options].some(({ value }) => value === 'new')").await;
    page.until("[...document.querySelectorAll('#policies th')].some(({ innerText }) => innerText === 'new')").await;
    page.assert_quiet().await;
}

#[tokio::test]
#[ignore = "starts Chromium: cargo xtask test --all"]
async fn the_page_says_when_it_is_not_live_and_is_again_after_a_restart() {
    let mut page = Page::open().await;
    page.take("api", "alice", 3).await;
    page.until_text("#policies td", "3").await;
    page.service.process().signal(Signal::STOP).unwrap();
    page.until_text("#live", "not live").await;
    page.service.process().signal(Signal::CONT).unwrap();
    page.until_text("#live", "live").await;
    page.until_text("#legend b", "3").await;

    page.service.kill();
    page.until_text("#live", "not live").await;
    page.service.restart().await.unwrap();
    page.until_text("#live", "live").await;
    page.until_text("#policies td", "0").await;
    page.take("api", "alice", 2).await;
    page.until_text("#policies td", "2").await;
    page.until_text("#legend b", "2").await;
    // A service that is not there is told in the console; nothing else is.
    let console = page.browser.console().await.unwrap();
    assert!(console.iter().all(|message| message.contains("net::ERR_")), "{console:?}");
}
