/**
 * The registry of running processes, and how to connect.
 */
import { age, code, html, linkButton, pageHead, section, snippet, status, table } from "@kontinuum/web";
import type { Kontinuum } from "../kinds/index.ts";
import { listHref } from "./addresses.ts";
import { frame, type Visit } from "./frame.ts";
import { processState } from "./state/state.ts";
import type { World } from "./world.ts";

/** All registered processes. */
export function registryPage(visit: Visit, world: World): string {
  const href = listHref(visit.namespace, "kontinuums");
  return frame(visit, world, {
    title: "Registry",
    active: href,
    crumbs: [{ label: visit.namespace, href: listHref(visit.namespace, "instances") }, { label: "Registry" }],
    liveId: "registry-content",
    body: html`${pageHead({
      title: "Registry",
      sentence: "Every running Kontinuum process: this hub and the servers of its zones.",
      verbs: linkButton({ href: "/app/zones/add", label: "Add zone", kind: "primary" }),
    })}${section({
      title: "Processes",
      count: world.processes.length,
      body:
        world.processes.length === 0
          ? html`<p class="section-body">No process is registered yet.</p>`
          : table<Kontinuum>({
              label: "Processes",
              rows: world.processes,
              rowId: (process) => `k-${process.metadata.uid}`,
              columns: [
                { title: "Name", isName: true, cell: ({ metadata }) => metadata.name },
                { title: "State", cell: (process) => status(processState(process, visit.nowMs)) },
                {
                  title: "Role",
                  cell: (process) =>
                    html`<span class="label-chip"
                      >${process.status?.role === "Worker" ? "Zone worker" : "Control plane"}</span
                    >`,
                },
                { title: "Region", priority: 2, cell: ({ spec }) => spec.region || "-" },
                { title: "Zone", priority: 2, cell: ({ spec }) => spec.zone || "-" },
                { title: "Version", priority: 2, cell: (process) => process.status?.version ?? "-" },
                {
                  title: "Heartbeat",
                  align: "right",
                  cell: (process) => age(process.status?.lastHeartbeatTime, visit.nowMs, " ago"),
                },
              ],
            }),
    })}`,
  });
}

/** How to reach this hub; `kubeconfig` is what the download gives. */
export function connectPage(visit: Visit, kubeconfig: string, machineApi: string | undefined): string {
  return frame(visit, undefined, {
    title: "Connect",
    active: "/app/connect",
    crumbs: [{ label: "Connect" }],
    body: html`${pageHead({ title: "Connect", verbs: linkButton({ href: "/app/registry/kubeconfig", label: "Download kubeconfig" }) })}
    ${section({
      title: "kubectl",
      body: html`<div class="section-body stack">
        ${snippet("import-cli", "kontinuum config import kontinuum-kubeconfig.yaml")}${code(kubeconfig)}
      </div>`,
    })}
    ${
      machineApi === undefined
        ? null
        : section({
            title: "Machine API",
            body: html`<div class="section-body">
              ${snippet("machine-api", `KRYTON_URL=${machineApi} krytonctl list`)}
            </div>`,
          })
    }`,
  });
}
