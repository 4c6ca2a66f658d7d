//! Which addresses are of the public Internet: the registries of special addresses, from the outside in.
//!
//! What is not known to be public is not. Addresses that carry another one inside (IPv4-mapped, NAT64, 6to4, Teredo) are
//! never public here, whatever they carry: they lead to places that the outer form hides.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(first: u16, second: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), length)
}

/// IPv4: all that is not the public Internet.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),       // this network; 0.0.0.0 reaches the machine itself
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // carrier-grade NAT
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, and the metadata of clouds
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(198, 18, 0, 0, 15),   // measurements
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, and broadcast
];

/// IPv6: global unicast. All else (unspecified, loopback, IPv4-mapped, NAT64, unique local, link-local, multicast) is not.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// IPv6: what of the global part is not the public Internet.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),      // protocol assignments, Teredo among them
    v6(0x2001, 0x0db8, 32), // documentation
    v6(0x2002, 0, 16),      // 6to4
    v6(0x3fff, 0, 20),      // documentation
];

/// Whether an address is of the public Internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !SPECIAL_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_V6.contains(&v6) && !SPECIAL_V6.iter().any(|net| net.contains(&v6)),
    }
}
