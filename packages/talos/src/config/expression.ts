/**
 * The CEL expressions of a configuration: what each place lets an expression mention and what it must give.
 *
 * The language is CEL without the additions of Kubernetes: numbers of two types are not compared (`disk.size > 1u`, not
 * `> 1`). Names and types are those of Talos' resources.
 */
import { ScalarType, type DescField, type DescMessage } from "@bufbuild/protobuf";
import {
  CelBudgetError,
  CelCompileError,
  CelEntryMap,
  CelError,
  celFunction,
  CelFunctionTable,
  celLanguageFunctions,
  celListOf,
  celMapOf,
  celOptionalFunctions,
  celOptionalOf,
  CelMeter,
  celTypes,
  CelUint,
  compileCel,
  defaultCelBudget,
  type CelObjectField,
  type CelType,
  type CelValue,
} from "@kontinuum/kapi";
import { DiscoveredVolumeSpecSchema, DiskSpecSchema } from "../gen/resource/block/block_pb.ts";
import { LinkStatusSpecSchema } from "../gen/resource/network/network_pb.ts";

/** Places for expressions. */
export type ExpressionPlace = "disk" | "volume" | "member volume" | "link" | "OOM trigger" | "OOM ranking";

const { bool, bytes, double, duration, int, string, uint } = celTypes;

const scalars: ReadonlyMap<ScalarType, CelType> = new Map([
  [ScalarType.BOOL, bool],
  [ScalarType.STRING, string],
  [ScalarType.BYTES, bytes],
  [ScalarType.DOUBLE, double],
  [ScalarType.FLOAT, double],
  [ScalarType.UINT32, uint],
  [ScalarType.UINT64, uint],
]);

function fieldType(field: DescField): CelType {
  switch (field.fieldKind) {
    case "scalar":
      return scalars.get(field.scalar) ?? int;
    case "message":
      return objectType(field.message);
    case "enum":
      return int;
    case "list":
      return celListOf(
        field.listKind === "scalar"
          ? (scalars.get(field.scalar) ?? int)
          : field.listKind === "message"
            ? objectType(field.message)
            : int,
      );
    case "map":
      return celMapOf(string, field.mapKind === "scalar" ? (scalars.get(field.scalar) ?? int) : celTypes.dyn);
  }
}

function objectType(message: DescMessage): CelType {
  const fields = new Map<string, CelObjectField>(
    message.fields.map((field) => [field.name, { type: fieldType(field), jsonName: field.name }]),
  );
  return { kind: "object", name: message.typeName, fields };
}

const disk = objectType(DiskSpecSchema);
const volume = objectType(DiscoveredVolumeSpecSchema);
const link = objectType(LinkStatusSpecSchema);

/** Bytes of a unit: `KiB` to `EiB` by 1024, `kB` to `EB` by 1000. */
const units: Readonly<Record<string, CelType>> = Object.fromEntries(
  ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "kB", "MB", "GB", "TB", "PB", "EB"].map((unit) => [unit, uint]),
);

const classes: Readonly<Record<string, CelType>> = Object.fromEntries(
  ["Besteffort", "Burstable", "Guaranteed", "Podruntime", "System"].map((name) => [name, int]),
);

/** Memory pressure of the whole system and by class of service, each with its change since the last look. */
function pressure(): Record<string, CelType> {
  const variables: Record<string, CelType> = { time_since_trigger: duration };
  const byClass = celMapOf(int, double);
  for (const change of ["", "d_"]) {
    for (const kind of ["some", "full"]) {
      for (const window of ["avg10", "avg60", "avg300", "total"]) {
        variables[`${change}memory_${kind}_${window}`] = double;
        variables[`${change}qos_memory_${kind}_${window}`] = byClass;
      }
    }
    for (const amount of ["current", "peak", "max"]) variables[`${change}qos_memory_${amount}`] = byClass;
  }
  return variables;
}

const variables: Readonly<Record<ExpressionPlace, Readonly<Record<string, CelType>>>> = {
  disk: { disk, system_disk: bool, ...units },
  volume: { disk, volume, ...units },
  "member volume": { disk, volume, volume_id: string, system_disk: bool, ...units },
  link: { link },
  "OOM trigger": { ...pressure(), ...units, ...classes },
  "OOM ranking": {
    memory_max: celOptionalOf(uint),
    memory_current: celOptionalOf(uint),
    memory_peak: celOptionalOf(uint),
    path: string,
    class: int,
    ...units,
    ...classes,
  },
};

const glob = celFunction("glob", ["string", "string"], "bool", (pattern, text) => matchesGlob(text, pattern));
const mac = celFunction(
  "mac",
  ["bytes"],
  "string",
  (address) => Buffer.from(address).toString("hex").match(/../g)?.join(":") ?? "",
);
/** Only checked here: the sum of the products, class by class. */
const multiply = celFunction(
  "multiply_qos_vectors",
  ["map(dyn, double)", "map(dyn, double)"],
  "double",
  () => 0,
);

const functions: Readonly<Record<ExpressionPlace, CelFunctionTable>> = {
  disk: new CelFunctionTable([...celLanguageFunctions, glob]),
  volume: new CelFunctionTable(celLanguageFunctions),
  "member volume": new CelFunctionTable([...celLanguageFunctions, glob]),
  link: new CelFunctionTable([...celLanguageFunctions, glob, mac]),
  "OOM trigger": new CelFunctionTable([...celLanguageFunctions, ...celOptionalFunctions, multiply]),
  "OOM ranking": new CelFunctionTable([...celLanguageFunctions, ...celOptionalFunctions]),
};

/** Bytes by unit. */
const unitBytes: Readonly<Record<string, bigint>> = Object.fromEntries(
  ["k", "M", "G", "T", "P", "E"].flatMap((letter, index) => [
    [`${letter === "k" ? "K" : letter}iB`, 1024n ** BigInt(index + 1)],
    [`${letter}B`, 1000n ** BigInt(index + 1)],
  ]),
);

/** A disk as an expression sees it. */
export interface SelectableDisk {
  readonly devicePath: string;
  readonly sizeBytes: number;
  readonly model: string;
  readonly serial: string;
  readonly modalias?: string;
  readonly uuid: string;
  readonly wwid: string;
  readonly transport: string;
  readonly rotational: boolean;
  readonly readonly: boolean;
  readonly cdrom: boolean;
  readonly busPath: string;
}

/** Whether an expression chooses a disk that has no system on it yet; one that fails or is none chooses nothing. */
export function selectsDisk(expression: string, candidate: SelectableDisk): boolean {
  if (expressionError(expression, "disk") !== undefined) return false;
  const program = compileCel(expression, { variables: variables.disk, functions: functions.disk });
  const fields: Readonly<Record<string, CelValue>> = {
    size: new CelUint(BigInt(candidate.sizeBytes)),
    io_size: new CelUint(512n),
    sector_size: new CelUint(512n),
    readonly: candidate.readonly,
    model: candidate.model,
    serial: candidate.serial,
    modalias: candidate.modalias ?? "",
    wwid: candidate.wwid,
    bus_path: candidate.busPath,
    sub_system: "/sys/class/block",
    transport: candidate.transport,
    rotational: candidate.rotational,
    cdrom: candidate.cdrom,
    dev_path: candidate.devicePath,
    uuid: candidate.uuid,
  };
  const values = Object.fromEntries(
    Object.entries(unitBytes).map(([unit, bytes]): [string, CelValue] => [unit, new CelUint(bytes)]),
  );
  try {
    const disk = new CelEntryMap(Object.entries(fields));
    return program.evaluate({ ...values, disk, system_disk: false }, new CelMeter(defaultCelBudget)) === true;
  } catch (error) {
    if (error instanceof CelError || error instanceof CelBudgetError) return false;
    throw error;
  }
}

/** What is wrong with an expression, or `undefined`: its place in the text and the reason. */
export function expressionError(expression: string, place: ExpressionPlace): string | undefined {
  const wanted = place === "OOM ranking" ? double : bool;
  try {
    const { type } = compileCel(expression, { variables: variables[place], functions: functions[place] });
    return type.kind === wanted.kind ? undefined : `it gives ${type.kind}, not ${wanted.kind}`;
  } catch (error) {
    if (error instanceof CelCompileError) return error.message;
    throw error;
  }
}

/** `*` stands for any text. Without regular expressions, so that no pattern is slow. */
export function matchesGlob(value: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return value === pattern;
  if (!value.startsWith(first)) return false;
  let position = first.length;
  const last = rest.pop() ?? "";
  for (const part of rest) {
    const found = value.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return value.length - last.length >= position && value.endsWith(last);
}
