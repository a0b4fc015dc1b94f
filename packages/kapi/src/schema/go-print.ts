/**
 * Numbers as Go prints them, for texts that must match the Kubernetes API's.
 */

/** A float64 as Go's `%v` prints it: shortest digits, with an exponent below 1e-4 and from 1e+06 on. */
export function printGoFloat(value: number | bigint): string {
  const float = Number(value);
  if (Number.isNaN(float)) return "NaN";
  if (!Number.isFinite(float)) return float > 0 ? "+Inf" : "-Inf";
  if (float === 0) return Object.is(float, -0) ? "-0" : "0";
  const [digits = "0", exponentText = "0"] = float.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(float);
  const sign = exponent < 0 ? "-" : "+";
  return `${digits}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
