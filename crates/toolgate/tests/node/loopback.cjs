// Preloaded before a server that listens on every interface at a port of its choice: it listens on loopback, at a port that
// the system chooses and that is printed.
"use strict";

const net = require("node:net");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (_port, ...rest) {
  this.once("listening", () => console.log(`listening on ${this.address().port}`));
  return listen.call(this, { port: 0, host: "127.0.0.1" }, ...rest.filter((argument) => typeof argument === "function"));
};
