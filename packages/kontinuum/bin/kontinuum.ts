#!/usr/bin/env node
/**
 * The program `kontinuum`. `bin/kontinuum` in the root starts it with the locked Node.
 */
import { runMain } from "../src/cli/main.ts";

await runMain();
