#!/usr/bin/env node
/**
 * The program `kontinuum`. Node runs TypeScript by itself from 24.16 on; whoever has an older one as their
 * own gets the one locked in node_modules, or one line that says what is missing.
 */
import { runMain } from "../src/cli/main.ts";

await runMain();
