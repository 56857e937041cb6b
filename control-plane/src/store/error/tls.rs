//! What went wrong with TLS, in words that name the fix.

use std::{error::Error as _, io, sync::Arc};

use redis::RedisError;
use rustls::{AlertDescription, CertificateError, Error};

/// What went wrong, if it did with TLS. The same fault has the same text each time, so none has the time in it.
pub(super) fn fault(error: &RedisError) -> Option<String> {
    Some(match cause(error)? {
        // The second: from one with the same name as one who is trusted.
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "the server's certificate is from nobody who is trusted here; if it is right, set store.tls.ca_file to the \
             certificate of who issued it"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidForName) => {
            "the server's certificate is not for this host".to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented }) => {
            format!("the server's certificate is not for {}, only for {}", expected.to_str(), presented.join(", "))
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "the server's certificate has expired".to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
            "the server's certificate is not valid yet; is this machine's clock right?".to_owned()
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants to see a certificate; set store.tls.cert_file and store.tls.key_file".to_owned()
        }
        Error::InvalidMessage(_) => {
            "what answers there does not speak TLS; use the server's TLS port, or a URL without TLS".to_owned()
        }
        other => other.to_string(),
    })
}

/// The client wraps what rustls says twice.
fn cause(error: &RedisError) -> Option<&Error> {
    let wrapped: &Arc<dyn std::error::Error + Send + Sync> = error.source()?.downcast_ref()?;
    match wrapped.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref()?.downcast_ref(),
        None => wrapped.downcast_ref(),
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::UnixTime;

    use super::*;

    fn check(error: Error, expected: &str) {
        let error = RedisError::from(io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(fault(&error).as_deref(), Some(expected));
    }

    #[test]
    fn faults_name_the_fix() {
        check(
            CertificateError::UnknownIssuer.into(),
            "the server's certificate is from nobody who is trusted here; if it is right, set store.tls.ca_file to the \
             certificate of who issued it",
        );
        check(
            Error::AlertReceived(AlertDescription::CertificateRequired),
            "the server wants to see a certificate; set store.tls.cert_file and store.tls.key_file",
        );
        check(
            rustls::InvalidMessage::InvalidContentType.into(),
            "what answers there does not speak TLS; use the server's TLS port, or a URL without TLS",
        );
        check(Error::DecryptError, "cannot decrypt peer's message");
    }

    #[test]
    fn the_same_fault_has_the_same_text_at_any_time() {
        let expired = |second| {
            let [time, not_after] = [second, 0].map(std::time::Duration::from_secs).map(UnixTime::since_unix_epoch);
            CertificateError::ExpiredContext { time, not_after }.into()
        };
        for second in [1, 2] {
            check(expired(second), "the server's certificate has expired");
        }
    }

    #[test]
    fn other_faults_are_not_of_tls() {
        assert_eq!(fault(&RedisError::from(io::Error::from(io::ErrorKind::ConnectionRefused))), None);
        assert_eq!(fault(&RedisError::from(io::Error::other("x"))), None);
        assert_eq!(fault(&RedisError::from((redis::ErrorKind::AuthenticationFailed, "x"))), None);
    }
}
