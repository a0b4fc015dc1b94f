/**
 * `make soak`: very long runs. Each prints what it measured; the last result is committed under docs/.
 */
import { runPrograms } from "./programs.ts";

process.exit(await runPrograms("test", ".soak.ts", process.argv.slice(2)));
