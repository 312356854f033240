//! The signature algorithms that an issuer may use. There is no symmetric one and no `none`: what cannot be named cannot
//! be confused with.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, VerificationAlgorithm,
};

/// How a signature is verified, by the kind of the key.
pub(crate) enum Verification {
    Rsa(&'static RsaParameters),
    /// A key that is a point on a curve.
    Point(&'static dyn VerificationAlgorithm),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl SignatureAlgorithm {
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Those that an issuer may use where nothing else is configured.
    pub const USUAL: [Self; 4] = [Self::Rs256, Self::Ps256, Self::Es256, Self::EdDsa];

    /// The name by RFC 7518 and RFC 8037.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }

    pub(crate) fn verification(self) -> Verification {
        match self {
            Self::Rs256 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Verification::Rsa(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Verification::Rsa(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Verification::Rsa(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 => Verification::Point(&ECDSA_P256_SHA256_FIXED),
            Self::Es384 => Verification::Point(&ECDSA_P384_SHA384_FIXED),
            Self::EdDsa => Verification::Point(&ED25519),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_asymmetric_algorithms_have_a_name() {
        for algorithm in SignatureAlgorithm::ALL {
            assert_eq!(SignatureAlgorithm::parse(algorithm.as_str()), Some(algorithm));
        }
        for name in ["none", "None", "HS256", "HS512", "rs256", "ES512", "", "RS256 "] {
            assert_eq!(SignatureAlgorithm::parse(name), None, "{name}");
        }
    }
}
