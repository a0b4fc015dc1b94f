/**
 * `make test-crash`: kill -9 rounds with recorded clients, long form. The last result is committed to docs/trust.md.
 */
import { runPrograms } from "./programs.ts";

process.exit(await runPrograms("test", ".crash.ts", process.argv.slice(2)));
