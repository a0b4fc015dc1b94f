/**
 * `@kontinuum/kryton`: one machine API over machine providers: demo now; dockur, libvirt and KubeVirt are the contract's
 * other providers, not in this build yet.
 */
export { createKryton, type Kryton, type KrytonOptions } from "./server.ts";
export { readConfig, type Config } from "./config/config.ts";
export type { Environment } from "./config/values.ts";
export type { Authenticator, AuthRequest } from "./auth/authenticator.ts";
export { createSealer, sealKeyBytes, type Sealer } from "./store/sealer.ts";
export { openSealer } from "./store/encryption-key.ts";
export type { DemoGuest, DemoHook } from "./providers/demo/hook.ts";
export type { CatalogImage, Image } from "./model/image.ts";
export type { CreateMachine, Machine, MachineSpec, MachineState, Snapshot } from "./model/machine.ts";
export { machineStates } from "./model/machine.ts";
export type { CloudEvent } from "./model/event.ts";
export type { Operation } from "./model/operation.ts";
export { allowed, hasProject, hasRole, type Principal, type Role } from "./model/principal.ts";
export { KrytonError, type KrytonCode } from "./model/errors.ts";
export type { AppEnv } from "./http/pages.ts";
export type { Services } from "./http/services.ts";
export { createKrytonClient, KrytonClient, KrytonClientError } from "./client/index.ts";
