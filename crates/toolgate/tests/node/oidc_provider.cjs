// An issuer of access tokens: oidc-provider with one client, for any resource. Writes its URL as a line, and ends with its input.
"use strict";

const { createServer } = require("node:http");
const { generateKeyPairSync } = require("node:crypto");

const { ALGORITHM, CLIENT_ID, CLIENT_SECRET } = process.env;
const PAIRS = {
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
};

async function main() {
  const { Provider } = await import(require.resolve("oidc-provider"));
  const key = PAIRS[ALGORITHM]().privateKey.export({ format: "jwk" });
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const client = {
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    grant_types: ["client_credentials"],
    id_token_signed_response_alg: ALGORITHM,
    redirect_uris: [],
    response_types: [],
  };
  const getResourceServerInfo = (_, resource) => ({
    accessTokenFormat: "jwt",
    audience: resource,
    jwt: { sign: { alg: ALGORITHM } },
    scope: "toolgate",
  });
  const provider = new Provider(issuer, {
    clients: [client],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: { enabled: true, getResourceServerInfo },
    },
    jwks: { keys: [{ ...key, alg: ALGORITHM, kid: "first", use: "sig" }] },
    scopes: ["toolgate"],
  });
  server.on("request", provider.callback());
  console.log(issuer);
}

process.stdin.on("end", () => process.exit(0)).resume();
main();
