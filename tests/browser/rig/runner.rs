//! Runs the tests one after the other in one browser, and reports them in the form that cargo's own harness uses.

use super::browser::Browser;
use super::stage::Stage;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(180);

type Body = Box<dyn Fn(Arc<Stage>) -> Pin<Box<dyn Future<Output = ()>>>>;

/// A test and its name.
pub struct Test {
    name: &'static str,
    body: Body,
}

impl Test {
    /// A test; `name` says what it promises.
    pub fn new<F, Fut>(name: &'static str, body: F) -> Self
    where
        F: Fn(Arc<Stage>) -> Fut + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        Self { name, body: Box::new(move |stage| Box::pin(body(stage))) }
    }
}

/// The tests of functions, each under its own name.
#[macro_export]
macro_rules! browser_tests {
    ($($name:ident),* $(,)?) => {
        vec![$($crate::rig::runner::Test::new(
            concat!(module_path!(), "::", stringify!($name)), |stage| async move { $name(&stage).await },
        )),*]
    };
}

/// Runs what the command line names. Needs a `LocalSet`: tests stay on one thread.
pub async fn run(tests: Vec<Test>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        tests.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    let words: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let named = |test: &Test| words.is_empty() || words.iter().any(|word| test.name.contains(word.as_str()));
    let (tests, left_out): (Vec<Test>, Vec<Test>) = tests.into_iter().partition(named);
    println!("\nrunning {} tests", tests.len());
    let begin = Instant::now();
    super::stage::forget_failures();
    let browser = match Browser::start().await {
        Ok(browser) => Arc::new(browser),
        Err(fault) => {
            println!("{fault}\n\ntest result: FAILED. 0 passed; {} failed; 0 ignored", tests.len().max(1));
            return ExitCode::FAILURE;
        }
    };
    let mut failed = Vec::new();
    for test in &tests {
        let start = Instant::now();
        let fault = play(test, &browser).await;
        println!("test {} ... {} ({:.1?})", test.name, if fault.is_none() { "ok" } else { "FAILED" }, start.elapsed());
        failed.extend(fault.map(|fault| (test.name, fault)));
    }
    Arc::into_inner(browser).expect("no test keeps the browser").stop().await;
    for (name, fault) in &failed {
        println!("\n---- {name} ----\n{fault}");
    }
    println!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        tests.len() - failed.len(),
        failed.len(),
        left_out.len(),
        begin.elapsed().as_secs_f32(),
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one test on a stage of its own; answers what went wrong.
async fn play(test: &Test, browser: &Arc<Browser>) -> Option<String> {
    browser.clear().await;
    let stage = Arc::new(Stage::build(browser.clone()).await);
    let run = tokio::task::spawn_local((test.body)(stage.clone()));
    let stop = run.abort_handle();
    let fault = match tokio::time::timeout(LIMIT, run).await {
        Ok(Ok(())) => return None,
        Ok(Err(e)) => match e.try_into_panic() {
            Ok(panic) => text_of(panic.as_ref()),
            Err(e) => e.to_string(),
        },
        Err(_) => format!("not at its end within {LIMIT:?}"),
    };
    stop.abort();
    let kept = stage.keep(&test.name.replace("::", "-")).await;
    Some(format!("{fault}\nkept in {}", kept.display()))
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without text").to_owned()
}
