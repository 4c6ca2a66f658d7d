//! The table of addresses: odd forms, special networks, ports, and names that lead inside.

use super::*;

fn list(entries: &[&str]) -> AllowList {
    AllowList::parse(entries).unwrap()
}

fn passes(list: &AllowList, url: &str) -> bool {
    list.check(&Url::parse(url).unwrap()).is_ok()
}

#[test]
fn nothing_passes_but_what_is_listed_on_its_ports() {
    let list = list(&["erp.example.com", "api.example.com:8443", "127.0.0.1:9000", "[::1]:9000", "münchen.example"]);
    for url in [
        "http://erp.example.com/",
        "https://erp.example.com/a?b=c",
        "https://ERP.example.com:443/",
        "https://erp.example.com./",
        "https://api.example.com:8443/",
        "http://127.0.0.1:9000/",
        "http://2130706433:9000/",
        "http://0x7f.1:9000/",
        "http://0177.0.0.1:9000/",
        "http://１２７.0.0.1:9000/",
        "http://[::1]:9000/",
        "http://[0:0:0:0:0:0:0:1]:9000/",
        "https://xn--mnchen-3ya.example/",
        "https://MÜNCHEN.example/",
    ] {
        assert!(passes(&list, url), "{url}");
    }
    for url in [
        "http://erp.example.com:8080/",
        "http://example.com/",
        "http://erp.example.com.evil.test/",
        "http://evil-erp.example.com/",
        "https://api.example.com/",
        "http://127.0.0.1/",
        "http://127.0.0.2:9000/",
        "http://[::ffff:127.0.0.1]:9000/",
        "http://[::]:9000/",
        "http://localhost:9000/",
        "http://munchen.example/",
        "http://user@erp.example.com/",
        "http://erp.example.com@evil.test/",
        "http://:secret@erp.example.com/",
        "ftp://erp.example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:9000/",
        "data:text/plain,x",
    ] {
        assert!(!passes(&list, url), "{url}");
    }
    assert!(!passes(&AllowList::default(), "https://erp.example.com/"));
}

#[test]
fn no_form_of_writing_reaches_an_address_that_is_not_listed() {
    let list = list(&["erp.example.com", "93.184.216.34"]);
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0",
        "0.0.0.0",
        "127.0.0.1.",
        "１２７.0.0.1",
        "127。0。0。1",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "[fd00::1]",
        "[fe80::1]",
        "localhost",
    ] {
        assert!(!passes(&list, &format!("http://{host}/")), "{host}");
    }
    assert!(passes(&list, "http://93.184.216.34/") && passes(&list, "http://1572395042/"));
}

#[test]
fn special_networks_are_not_public_and_their_neighbours_are() {
    for special in [
        "0.0.0.0",
        "0.1.2.3",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "64:ff9b::1",
        "64:ff9b::5db8:d822",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
    ] {
        assert!(!is_public(special.parse().unwrap()), "{special}");
    }
    for public in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.0.1",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.167.0.1",
        "198.17.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "2001:200::1",
        "2606:4700::1111",
        "2a00:1450::1",
    ] {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
}

#[test]
fn a_listed_name_leads_to_public_addresses_and_to_what_is_listed_itself() {
    let ips = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<IpAddr>>();
    let list = list(&["erp.example.com", "erp.internal:9000", "127.0.0.1:9000", "10.1.0.0/16", "localhost:9000"]);
    for (name, port, given, chosen) in [
        ("erp.example.com", 443, vec!["93.184.216.34"], vec!["93.184.216.34"]),
        ("erp.example.com", 443, vec!["192.168.0.1", "93.184.216.34"], vec!["93.184.216.34"]),
        ("erp.internal", 9000, vec!["10.1.2.3"], vec!["10.1.2.3"]),
        ("erp.internal", 9000, vec!["127.0.0.1"], vec!["127.0.0.1"]),
        ("localhost", 9000, vec!["::1", "127.0.0.1"], vec!["::1", "127.0.0.1"]),
        ("erp.example.com", 443, vec![], vec![]),
    ] {
        assert_eq!(list.choose(name, port, &ips(&given)), Ok(ips(&chosen)), "{name}");
    }
    for (name, port, given) in [
        ("erp.example.com", 443, "127.0.0.1"),
        ("erp.example.com", 80, "10.2.0.1"),
        ("erp.example.com", 443, "::1"),
        ("erp.example.com", 443, "::ffff:127.0.0.1"),
        ("erp.example.com", 443, "169.254.169.254"),
        ("erp.internal", 9000, "127.0.0.2"),
        ("localhost", 9000, "192.168.0.1"),
        ("localhost.example.com", 9000, "127.0.0.2"),
    ] {
        let refusal = list.choose(name, port, &ips(&[given])).unwrap_err();
        assert!(matches!(refusal, Refusal::NotPublic { .. }) && refusal.to_string().contains(given), "{name} {given}");
    }
}

#[test]
fn entries_that_are_no_host_are_named() {
    let good =
        ["a.example", "a.example:80", "a.example:443", "1.2.3.4", "[::1]", "10.0.0.0/8", "fd00::/8", "localhost:1"];
    assert!(AllowList::parse(&good).is_ok());
    let secure = list(&["a.example:443"]);
    assert!(passes(&secure, "https://a.example/") && !passes(&secure, "http://a.example/"));
    for bad in [
        "",
        "http://a.example",
        "a.example/x",
        "*.example",
        "u@a.example",
        "a.example:",
        "a.example:0x",
        "a b",
        "::1",
        "10.0.0.0/33",
        "?x",
    ] {
        assert_eq!(AllowList::parse(&["ok.example", bad]), Err(vec![bad.to_owned()]), "{bad}");
    }
}
