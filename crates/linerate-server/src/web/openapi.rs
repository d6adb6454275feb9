//! The API as OpenAPI 3.1, made from the types that the handlers read and write, for tests alone:
//! they hold `spec/openapi.json`, which is what a server answers, to it. `spec/http.md` says what
//! the document means.

use linerate_core::mesh;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::delays::Delays;
use super::error::ApiError;
use super::server_info::ServerInfo;
use super::{from_here, probe, published, results, runs, series, studies, words};

/// Where OpenAPI keeps what is named (3.1.0 §4.8.7).
const SCHEMAS: &str = "/components/schemas";
const JSON: &str = "application/json";
const OPEN_METRICS: &str = "application/openmetrics-text";

/// One method of one path.
struct Operation {
    path: &'static str,
    method: &'static str,
    summary: &'static str,
    /// Parameters of the query, behind `?`.
    query: Option<Value>,
    body: Option<Value>,
    /// Status, media type and, where there is one, schema of the answer.
    answer: (u16, &'static str, Option<Value>),
}

/// The whole API as a document of OpenAPI 3.1.
pub fn document() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = SCHEMAS.into());
    let mut types = settings.into_generator();
    let error = named_schema::<ApiError>(&mut types);
    let all = [
        test_operations(&mut types),
        stored(&mut types),
        studied(&mut types),
        meshed(&mut types),
        others(&mut types),
    ];
    let mut paths = Map::new();
    for operation in all.into_iter().flatten() {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method] = written(&operation, &error);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "linerate serve",
            "version": "1",
            "description": "Tests from browsers, measurements from the server, stored results. \
                            Errors have one shape; spec/http.md has limits and events.",
        },
        "paths": paths,
        "components": {
            "schemas": types.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{}, { "token": [] }],
    })
}

fn named_schema<T: JsonSchema>(types: &mut SchemaGenerator) -> Value {
    types.subschema_for::<T>().to_value()
}

/// Fields of a query, as parameters.
fn query_parameters<T: JsonSchema>(types: &mut SchemaGenerator) -> Option<Value> {
    let whole = T::json_schema(types).to_value();
    let required = whole["required"].as_array().cloned().unwrap_or_default();
    let fields = whole["properties"].as_object().cloned().unwrap_or_default();
    let parameters = fields.into_iter().map(|(name, schema)| {
        let needed = required.contains(&json!(name));
        json!({ "name": name, "in": "query", "required": needed, "schema": schema })
    });
    Some(parameters.collect())
}

fn written(operation: &Operation, error: &Value) -> Value {
    let (status, kind, schema) = &operation.answer;
    let schema = schema.clone().unwrap_or_else(|| json!({}));
    let mut parameters = operation.query.clone().unwrap_or_else(|| json!([]));
    for name in operation.path.split('{').skip(1).filter_map(|rest| rest.split_once('}')) {
        let text = json!({ "type": "string" });
        let one = json!({ "name": name.0, "in": "path", "required": true, "schema": text });
        parameters.as_array_mut().into_iter().for_each(|all| all.insert(0, one.clone()));
    }
    let mut whole = json!({
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            status.to_string(): {
                "description": operation.summary,
                "content": { *kind: { "schema": schema } },
            },
            "default": {
                "description": "what is wrong, for programs and for people",
                "content": { JSON: { "schema": error } },
            },
        },
    });
    if let Some(body) = &operation.body {
        whole["requestBody"] = json!({ "content": { JSON: { "schema": body } } });
    }
    whole
}

fn get(
    path: &'static str,
    summary: &'static str,
    answer: (&'static str, Option<Value>),
) -> Operation {
    let answer = (200, answer.0, answer.1);
    Operation { path, method: "get", summary, query: None, body: None, answer }
}

fn test_operations(types: &mut SchemaGenerator) -> Vec<Operation> {
    let run = "/api/v1/runs/{run}";
    vec![
        Operation {
            method: "post",
            body: Some(named_schema::<runs::BrowserTestRequest>(types)),
            answer: (201, JSON, Some(named_schema::<runs::BrowserTestBegun>(types))),
            ..get("/api/v1/runs", "begin a test from here to the server", (JSON, None))
        },
        Operation {
            method: "post",
            body: Some(named_schema::<from_here::MeasureRequest>(types)),
            answer: (201, JSON, Some(named_schema::<from_here::Begun>(types))),
            ..get("/api/v1/measure", "begin a measurement from the server", (JSON, None))
        },
        Operation {
            method: "delete",
            query: query_parameters::<runs::Shown>(types),
            ..get(run, "end a run before its time", (JSON, None))
        },
        get("/api/v1/runs/{run}/events", "what happens, live", ("text/event-stream", None)),
        Operation {
            method: "post",
            query: query_parameters::<runs::Shown>(types),
            body: Some(named_schema::<Delays>(types)),
            ..get("/api/v1/runs/{run}/delays", "round trips that the browser saw", (JSON, None))
        },
        get("/api/v1/echo", "a WebSocket that sends messages back", (JSON, None)),
        Operation {
            answer: (204, JSON, None),
            ..get("/api/v1/here", "nothing: to time a connection", (JSON, None))
        },
    ]
}

fn stored(types: &mut SchemaGenerator) -> Vec<Operation> {
    let record = json!({ "$ref": "record.schema.json" });
    let list = named_schema::<results::ResultsPage>(types);
    let words = named_schema::<words::Words>(types);
    let one = "/api/v1/results/{result}";
    vec![
        Operation {
            query: query_parameters::<results::ResultsQuery>(types),
            ..get("/api/v1/results", "stored results, newest first", (JSON, Some(list)))
        },
        get(one, "a stored record; with .csv behind its values", (JSON, Some(record))),
        get("/api/v1/results/{result}/explain", "its diagnosis", (JSON, None)),
        get(
            "/api/v1/results/{result}/words",
            "its limit, trust and caveats in words",
            (JSON, Some(words)),
        ),
        get("/api/v1/results/{result}/report", "it as a page of one file", ("text/html", None)),
        get("/api/v1/results/{result}/figures", "its drawings as SVG", (JSON, None)),
        Operation {
            query: query_parameters::<series::SeriesQuery>(types),
            ..get("/api/v1/series", "what schedules follow", (JSON, None))
        },
    ]
}

fn studied(types: &mut SchemaGenerator) -> Vec<Operation> {
    let (list, run) =
        (named_schema::<studies::StudyList>(types), named_schema::<studies::RunLine>(types));
    let (tables, table) = (
        named_schema::<published::Tables>(types),
        named_schema::<published::PublishedTableJson>(types),
    );
    let (all, one) = ("/api/v1/studies", "/api/v1/studies/{run}");
    vec![
        get(all, "studies that ship, and their runs", (JSON, Some(list))),
        Operation {
            method: "post",
            body: Some(named_schema::<studies::StudyRequest>(types)),
            answer: (201, JSON, Some(run.clone())),
            ..get(all, "begin a run of a study, or go on with one", (JSON, None))
        },
        get(one, "how far a run came", (JSON, Some(run))),
        Operation { method: "delete", ..get(one, "end a run before its time", (JSON, None)) },
        get("/api/v1/studies/{run}/report", "it as a page of one file", ("text/html", None)),
        get("/api/v1/published", "tables of old studies", (JSON, Some(tables))),
        get("/api/v1/published/{table}", "the figures of one", (JSON, Some(table))),
    ]
}

fn meshed(types: &mut SchemaGenerator) -> Vec<Operation> {
    let matrix = named_schema::<mesh::Matrix>(types);
    let plan = named_schema::<mesh::SignedPlan>(types);
    let post = |path, summary, body, answer| Operation {
        method: "post",
        body: Some(body),
        ..get(path, summary, (JSON, Some(answer)))
    };
    let (enrol, enrolled) =
        (named_schema::<mesh::Enrol>(types), named_schema::<mesh::Enrolled>(types));
    let (beat, beaten) =
        (named_schema::<mesh::Beat>(types), named_schema::<mesh::BeatAnswer>(types));
    let (results, taken) =
        (named_schema::<mesh::RunResults>(types), named_schema::<mesh::Stored>(types));
    vec![
        get("/api/v1/mesh", "how the mesh stands", (JSON, Some(matrix))),
        get("/api/v1/mesh/plan", "the signed plan, for an agent", (JSON, Some(plan))),
        post("/api/v1/mesh/enrol", "an agent joins by a token", enrol, enrolled),
        post("/api/v1/mesh/beat", "an agent is there", beat, beaten),
        post("/api/v1/mesh/results", "an agent gives results", results, taken),
    ]
}

fn others(types: &mut SchemaGenerator) -> Vec<Operation> {
    let info = named_schema::<ServerInfo>(types);
    vec![
        get("/api/v1/server", "what this server is, allows and does", (JSON, Some(info))),
        get("/api/v1/openapi.json", "this document", (JSON, None)),
        get("/metrics", "what is stored and runs; starts nothing", (OPEN_METRICS, None)),
        Operation {
            query: query_parameters::<probe::ProbeQuery>(types),
            ..get("/probe", "a light test to an allowed target", (OPEN_METRICS, None))
        },
        get("/.well-known/nq", "where networkQuality tests, over TLS", (JSON, None)),
        get("/nq/small", "one byte, over TLS", ("text/plain", None)),
        get("/nq/large", "as much as is taken, over HTTP/2", ("application/octet-stream", None)),
        Operation { method: "post", ..get("/nq/upload", "is dropped, over HTTP/2", (JSON, None)) },
        get("/robots.txt", "a measurement server is nothing to index", ("text/plain", None)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The paths of the router, by its source.
    fn routes() -> BTreeSet<String> {
        let source = include_str!("api.rs");
        let found = source.split(".route(").skip(1).filter_map(|rest| {
            let path = rest.split('"').nth(1)?;
            let call = rest.split_once(", ")?.1;
            Some(format!("{} {path}", call.split('(').next()?))
        });
        found.collect()
    }

    #[test]
    fn each_route_is_documented_and_each_documented_path_is_a_route() {
        let document = document();
        let paths = document["paths"].as_object().expect("paths");
        let documented: BTreeSet<String> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods").keys();
                methods.map(move |method| format!("{method} {path}"))
            })
            .collect();
        assert!(documented.len() >= 16, "{documented:?}");
        assert_eq!(documented, routes());
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = document();
        let text = document.to_string();
        for rest in text.split("\"$ref\":\"").skip(1) {
            let to = rest.split('"').next().expect("an end");
            let there = to.strip_prefix('#').map(|reference| document.pointer(reference).is_some());
            assert!(there.unwrap_or(to == "record.schema.json"), "{to}");
        }
    }
}
