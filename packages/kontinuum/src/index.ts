/**
 * `@kontinuum/kontinuum`: machines into clusters and zones.
 */
export { cleanDemo } from "./demo/clean-demo.ts";
export { runDemo, type DemoOptions } from "./demo/run-demo.ts";
export { main } from "./cli/main.ts";
export { startProcess, type RunningProcess, type ServeOptions } from "./serve/serve.ts";
export { parseConfig, type Config } from "./config/config.ts";
export { readValues, variables, type Values } from "./config/variables.ts";
export { addInstance } from "./domain/instance/instance.add.ts";
export { addZone, type ZoneInput } from "./domain/zone/zone.add.ts";
export * from "./kinds/index.ts";
