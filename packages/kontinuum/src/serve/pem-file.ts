/**
 * PEM files named by variables.
 */
import { readFile } from "node:fs/promises";
import { CodedError, messageOf } from "@kontinuum/std";
import type { VariableName } from "../config/variables.ts";

/** The file's text; empty when no file is named. Fails with `invalid_argument`, naming the variable. */
export async function readPemFile(variable: VariableName, file: string): Promise<string> {
  if (file === "") return "";
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `${variable} names ${file}, which can't be read: ${messageOf(error)}`,
    );
  }
}
