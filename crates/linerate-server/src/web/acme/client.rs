//! What an order asks over HTTPS: one connection a request, with limits of time and size.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use linerate_outbound::Authority;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

/// For all of a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Asks whoever shows a certificate that an authority vouches for.
pub(super) struct AcmeClient(pub(super) Authority);

type Broken = Box<dyn std::error::Error + Send + Sync>;

impl HttpClient for AcmeClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let authority = self.0.clone();
        Box::pin(async move {
            let at = request.uri().to_string();
            let asked = tokio::time::timeout(ANSWER_WITHIN, send_request(authority, request)).await;
            let late = || format!("no answer in {} s", ANSWER_WITHIN.as_secs()).into();
            let answer = asked.unwrap_or_else(|_| Err(late()));
            let answer = answer.map_err(|why| Error::Other(format!("{at}: {why}").into()))?;
            Ok(BytesResponse::from(answer))
        })
    }
}

async fn send_request(
    authority: Authority,
    mut request: Request<BodyWrapper<Bytes>>,
) -> Result<Response<Full<Bytes>>, Broken> {
    let uri = request.uri().clone();
    let host = uri.host().ok_or("it names no host")?.trim_matches(['[', ']']).to_owned();
    if uri.scheme_str() != Some("https") {
        return Err("not over TLS".into());
    }
    let stream = tokio::net::TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(443)));
    let name = ServerName::try_from(host.clone())?;
    let stream =
        TlsConnector::from(Arc::new(authority.config())).connect(name, stream.await?).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let asks = async {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        request.headers_mut().insert(header::HOST, authority.parse()?);
        let path = uri.path_and_query().map_or("/", |query| query.as_str());
        *request.uri_mut() = path.parse::<Uri>()?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok(Response::from_parts(head, Full::new(body)))
    };
    tokio::pin!(asks, connection);
    tokio::select! {
        answer = &mut asks => answer,
        _ = &mut connection => asks.await,
    }
}
