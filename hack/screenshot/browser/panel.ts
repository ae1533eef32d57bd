import type { Panel, RowPanel } from '@grafana/schema';

/** A panel of a dashboard with the results of its queries, or the heading of a row. */
export interface DrawnPanel {
  readonly panel: Panel | RowPanel;
  readonly series: readonly {
    readonly legend: string;
    /** A value for each time of the picture; null where there is none. */
    readonly values: readonly (number | null)[];
  }[];
}
