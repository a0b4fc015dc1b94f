/**
 * @peculiar/x509, set up: its metadata shim loaded before it, its crypto provider Node's own.
 * Import the library from here only.
 */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

export { x509 };
