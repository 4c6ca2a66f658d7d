//! Where the numbers of this process are kept, and how they are written for Prometheus.
//!
//! There is one recorder for the process, since the places that count know nothing of nodes: whoever runs two nodes in one
//! process reads the sum of both from either. An embedding binary that has set a recorder of its own keeps it, and gets the
//! numbers there; `/metrics` then tells nothing but what is read at that moment.

use crate::core::metric::{ALL, BUILD, Kind};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;
use std::time::Duration;

/// Upper ends of the buckets of times, seconds: from a commit on a quick disk to a chunk at its limit. A claim is to take less than
/// 20 ms.
const SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0,
];
/// Upper ends of the buckets of counts.
const ITEMS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
/// How often what histograms were given is put into buckets: until then each value is kept.
const TIDY_EVERY: Duration = Duration::from_secs(5);

/// The numbers of this process; the first call begins to keep them.
pub fn start() -> PrometheusHandle {
    static KEPT: OnceLock<PrometheusHandle> = OnceLock::new();
    KEPT.get_or_init(|| {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
            .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_items".to_owned()), ITEMS));
        let recorder = builder.expect("the lists of buckets are not empty").build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::info!("this process keeps its numbers elsewhere: /metrics has few of them");
        }
        describe();
        handle
    })
    .clone()
}

/// Puts values into buckets now and then, for as long as it is polled.
pub async fn tidy(kept: PrometheusHandle) {
    loop {
        tokio::time::sleep(TIDY_EVERY).await;
        kept.run_upkeep();
    }
}

/// Tells what each number says, and begins those without labels at 0: a number that is missing raises no alarm.
fn describe() {
    for metric in ALL {
        match metric.kind {
            Kind::Counter => {
                describe_counter!(metric.name, metric.help);
                if metric.labels.is_empty() {
                    counter!(metric.name).absolute(0);
                }
            }
            Kind::Gauge => describe_gauge!(metric.name, metric.help),
            Kind::Histogram => describe_histogram!(metric.name, metric.help),
        }
    }
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}
