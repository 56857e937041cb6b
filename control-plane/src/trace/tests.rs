use super::*;

fn environment<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |asked| variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned())
}

fn check(variables: &[(&str, &str)], expected: Result<bool, &str>) {
    let traces = Traces::from_environment(&environment(variables)).map(|traces| traces.are_on());
    assert_eq!(traces.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{variables:?}");
}

#[tokio::test]
async fn traces_are_off_unless_the_environment_names_a_collector() {
    check(&[], Ok(false));
    check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], Ok(false));
    check(&[("OTEL_SERVICE_NAME", "limits"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], Ok(false));
    check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")], Ok(true));
    check(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://collector.example/v1/traces")], Ok(true));
    check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), ("OTEL_SDK_DISABLED", "true")], Ok(false));
}

#[tokio::test]
async fn what_means_nothing_is_an_error_that_names_the_variable_and_shows_no_secret() {
    for bad in ["127.0.0.1:4318", "grpc://user:hunter2@h", "/v1", "http://", "nonsense", "http://a b"] {
        let wrong =
            "OTEL_EXPORTER_OTLP_ENDPOINT: is not a URL such as http://127.0.0.1:4318 or https://collector.example";
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", bad)], Err(wrong));
    }
    check(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")],
        Err(
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: \"grpc\" is not spoken here; use http/protobuf, which collectors take on \
             port 4318",
        ),
    );
}

#[tokio::test]
async fn a_callers_span_decides_whether_there_is_one() {
    let traces = Traces::from_environment(&environment(&[(ENDPOINTS[0], "http://127.0.0.1:1")])).unwrap();
    let check = |parent: Option<&'static str>| {
        let mut headers = HeaderMap::new();
        if let Some(parent) = parent {
            headers.insert("traceparent", parent.parse().unwrap());
        }
        traces.check(&headers).is_some()
    };
    assert!(check(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")));
    assert!(!check(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")));
    assert!(check(None), "the sampler's default is to follow the caller, and otherwise to trace");
    assert!(Traces::default().check(&HeaderMap::new()).is_none());
}
