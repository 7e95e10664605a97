//! The examples of `README.md`, `docs/server.md`, `docs/start/server.md` and `docs/undistorted.md` with `curl`, as they stand there.

use serde_json::Value;

use crate::fake::start;

#[tokio::test]
async fn every_example_with_curl_is_answered() {
    let running = start().await;
    let document = running.client.get("/openapi.json").await.good();
    let pages = [
        include_str!("../../../../README.md"),
        include_str!("../../../../docs/server.md"),
        include_str!("../../../../docs/start/server.md"),
        include_str!("../../../../docs/undistorted.md"),
    ];
    let mut count = 0;
    for block in pages.iter().flat_map(|page| page.split("```sh\n").skip(1)) {
        let block = block.split("```").next().unwrap();
        let Some(rest) = block.strip_prefix("curl http://127.0.0.1:8000") else { continue };
        let path = rest.split(' ').next().unwrap();
        let body = rest.split('\'').nth(3).unwrap();
        let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
        // The document of the API knows what they say.
        let schema = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        for (name, inner) in body.as_object().unwrap() {
            let known = &schema["properties"][name];
            assert!(!known.is_null(), "{name} of {path} is not in the document of the API");
            if let (Some(fields), Some(known)) = (inner.as_object(), known["properties"].as_object()) {
                let unknown = fields.keys().find(|field| !known.contains_key(*field));
                assert_eq!(unknown, None, "{name} of {path}, in the document of the API");
            }
        }
        running.client.post(path, &body).await.good();
        count += 1;
    }
    assert!(count >= 5, "{count} examples");
}
