//! Where a call goes: to the address that was checked, and nowhere that a name, a redirect or the environment says.

use super::{Names, get, outbound};
use crate::support::played::{Played, Target};
use taskbell::outbound::{CallFault, Refusal};

/// Proves: G19.
#[tokio::test]
async fn a_name_that_leads_inside_the_second_time_is_refused_and_never_connected_to() {
    let told = Target::at("127.0.0.2:0", |_, _| Played::answer("200 OK", "", "outside")).await;
    let port = told.address.port();
    let inside = Target::at(&format!("127.0.0.1:{port}"), |_, _| Played::answer("200 OK", "", "inside")).await;
    // 127.0.0.2 is listed and plays the public address; 127.0.0.1 is what must not be reached.
    let names = Names::leading(&["127.0.0.2", "127.0.0.1"]);
    let outbound = outbound(&[format!("rebinding.test:{port}"), format!("127.0.0.2:{port}")], &names);
    let url = format!("http://rebinding.test:{port}/");
    assert_eq!(get(&outbound, &url).await, Ok((200, "outside".to_owned())));
    let refused = get(&outbound, &url).await.unwrap_err();
    assert!(matches!(refused, CallFault::Refused(Refusal::NotPublic { .. })), "{refused:?}");
    assert!(!refused.may_pass());
    assert_eq!(names.asked(), ["rebinding.test", "rebinding.test"], "one look-up for one connection");
    assert_eq!((told.seen().len(), inside.seen().len()), (1, 0));
    assert_eq!(told.seen()[0].header("host"), format!("rebinding.test:{port}"));
}

#[tokio::test]
async fn of_several_addresses_only_those_that_may_be_are_tried() {
    let good = Target::at("127.0.0.2:0", |_, _| Played::answer("200 OK", "", "good")).await;
    let port = good.address.port();
    let inside = Target::at(&format!("127.0.0.1:{port}"), |_, _| Played::answer("200 OK", "", "inside")).await;
    let names = Names::leading(&["127.0.0.1 10.0.0.1 127.0.0.2 169.254.169.254"]);
    let outbound = outbound(&[format!("mixed.test:{port}"), format!("127.0.0.2:{port}")], &names);
    assert_eq!(get(&outbound, &format!("http://mixed.test:{port}/")).await, Ok((200, "good".to_owned())));
    assert_eq!(inside.seen().len(), 0);
}

/// Proves: G19.
#[tokio::test]
async fn a_name_is_never_asked_for_when_it_is_not_listed() {
    let names = Names::leading(&["127.0.0.1"]);
    let outbound = outbound(&["erp.test".to_owned()], &names);
    for url in
        ["http://other.test/", "http://erp.test:81/", "http://u:p@erp.test/", "http://127.0.0.1/", "ftp://erp.test/"]
    {
        assert!(matches!(get(&outbound, url).await, Err(CallFault::Refused(_))), "{url}");
    }
    assert_eq!(names.asked(), [""; 0]);
    for private in [
        "127.0.0.1",
        "10.0.0.1",
        "::1",
        "::ffff:10.0.0.1",
        "169.254.169.254",
        "64:ff9b::7f00:1",
        "0.0.0.0",
        "100.64.0.1",
    ] {
        let names = Names::leading(&[private]);
        let outbound = super::outbound(&["erp.test".to_owned()], &names);
        let answer = get(&outbound, "http://erp.test/").await;
        assert!(matches!(answer, Err(CallFault::Refused(Refusal::NotPublic { .. }))), "{private}: {answer:?}");
    }
}

/// Proves: G19.
#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let inside = Target::start(|_, _| Played::answer("200 OK", "", "inside")).await;
    let aim = inside.url("/");
    let target = Target::start(move |n, _| {
        let status = ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"][n % 5];
        Played::answer(status, &format!("location: {aim}\r\n"), "")
    })
    .await;
    let allow = [target.address.to_string(), inside.address.to_string()];
    let outbound = outbound(&allow, &Names::leading(&[]));
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(get(&outbound, &target.url("/")).await, Ok((status, String::new())));
    }
    assert_eq!(inside.seen().len(), 0);
}

#[tokio::test]
async fn a_host_or_a_length_in_the_headers_of_a_caller_counts_for_nothing() {
    let target = Target::start(|_, _| Played::answer("200 OK", "", "")).await;
    let outbound = outbound(&[target.address.to_string()], &Names::leading(&[]));
    let url = target.url("/").parse().unwrap();
    let mut call = taskbell::outbound::Call::new(taskbell::outbound::Method::POST, url, super::AMPLE);
    for (name, value) in [("host", "other.test"), ("content-length", "900"), ("connection", "upgrade"), ("x-own", "1")]
    {
        call.headers.insert(taskbell::outbound::HeaderName::from_static(name), value.parse().unwrap());
    }
    call.body = "four".into();
    assert_eq!(outbound.send(call).await.unwrap().status().as_u16(), 200);
    let seen = &target.seen()[0];
    assert_eq!(seen.header("host"), target.address.to_string());
    assert_eq!((seen.header("content-length").as_str(), seen.header("x-own").as_str()), ("4", "1"));
    assert_eq!(seen.body, b"four");
}
